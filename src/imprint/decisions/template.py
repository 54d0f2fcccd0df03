"""A template: a text with fields in braces; nothing but the names that are known can stand in them.

Double braces are refused where a template is taken: whoever writes `{{series}}` means the field, as other programs do,
and would find `{series}` in every post.
"""

from collections.abc import Iterator, Mapping
from string import Formatter

from imprint.problem import Problem


class BadTemplate(Problem):
    """A template that cannot be used; the sentence says why."""


def refuse(template: str, fields: tuple[str, ...], where: str | None = None) -> None:
    """Raise when a template has other fields than these, double braces, or braces that do not pair; say in which."""
    try:
        _refuse(template, fields)
    except BadTemplate as bad:
        raise BadTemplate(bad.code, bad.sentence, field=where) from None


def _refuse(template: str, fields: tuple[str, ...]) -> None:
    if "{{" in template or "}}" in template:
        raise BadTemplate(
            "rule.bad_template",
            f"A field is written with one brace on each side, such as {{{fields[0]}}}; double braces are not taken.",
        )
    for _, name in _parts(template, fields):
        if name is not None and name not in fields:
            raise BadTemplate(
                "rule.unknown_field",
                f"There is no field {{{name[:40]}}}; there are {_named(fields)}.",
            )


def filled(template: str, values: Mapping[str, str]) -> str:
    """Put the values in; what looks like a field in a value stays as it is."""
    known = tuple(values)
    return "".join(text + (values[name] if name is not None else "") for text, name in _parts(template, known))


def _parts(template: str, fields: tuple[str, ...]) -> Iterator[tuple[str, str | None]]:
    """Give texts, each with the field behind it; a form or a conversion of a field is refused, as is a path into it."""
    try:
        for text, name, form, conversion in Formatter().parse(template):
            if form or conversion:
                raise BadTemplate(
                    "rule.bad_template", f"A field is a name and nothing else; there are {_named(fields)}."
                )
            yield text, name
    except ValueError:
        raise BadTemplate(
            "rule.bad_template", f"The braces of a template do not pair; only fields stand in them: {_named(fields)}."
        ) from None


def _named(fields: tuple[str, ...]) -> str:
    return ", ".join(f"{{{name}}}" for name in fields)
