"""A template takes the fields that are known and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprint.decisions.template import BadTemplate, filled, refuse

FIELDS = ("series", "number", "title", "url")


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{series} {number}: {title}", "Sea 7: Waves"),
        ("no field", "no field"),
        ("{url}{url}", "https://a/7https://a/7"),
        ("", ""),
    ],
)
def test_fields_are_filled(template: str, text: str) -> None:
    """Each as often as it is there."""
    refuse(template, FIELDS)
    assert filled(template, {"series": "Sea", "number": "7", "title": "Waves", "url": "https://a/7"}) == text


@pytest.mark.parametrize(
    ("template", "code"),
    [
        ("{serie}", "rule.unknown_field"),
        ("{}", "rule.unknown_field"),
        ("{0}", "rule.unknown_field"),
        ("{series.__class__}", "rule.unknown_field"),
        ("{series[0]}", "rule.unknown_field"),
        ("{Series}", "rule.unknown_field"),
        ("{ series }", "rule.unknown_field"),
        ("{series!r}", "rule.bad_template"),
        ("{number:>100000000}", "rule.bad_template"),
        ("{series:{number}}", "rule.bad_template"),
        ("{series", "rule.bad_template"),
        ("series}", "rule.bad_template"),
        ("{series!}", "rule.bad_template"),
        ("{{series}}", "rule.bad_template"),
        ("{{ series }}", "rule.bad_template"),
        ("a {{ b", "rule.bad_template"),
        ("a }} b", "rule.bad_template"),
    ],
)
def test_everything_else_is_refused(template: str, code: str) -> None:
    """With a sentence that names the fields there are, or says how a brace is written."""
    with pytest.raises(BadTemplate) as caught:
        refuse(template, FIELDS)
    assert caught.value.code == code
    assert "{" in caught.value.sentence


@given(st.text(), st.text(), st.text())
def test_what_is_accepted_is_filled_and_values_are_only_text(template: str, series: str, title: str) -> None:
    """No accepted template fails later, and no value is read as a template."""
    values = {"series": series, "number": "1", "title": title, "url": ""}
    try:
        refuse(template, FIELDS)
    except BadTemplate:
        return
    filled(template, values)
    assert filled("{series}{title}", values) == series + title
