"""Shapes: what an answer looks like, made from the dataclass it is made of, with the names of the JSON."""

from collections.abc import Collection
from dataclasses import fields
from functools import cache
from typing import Annotated, Any, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, create_model
from pydantic.alias_generators import to_camel


def _sayable(text: str) -> str:
    # What PostgreSQL cannot keep: NUL.
    if "\x00" in text:
        raise ValueError("it contains a NUL character, which cannot be stored")
    return text


Text = Annotated[str, AfterValidator(_sayable)]


class Given(BaseModel):
    """What a request carries: names of the JSON, no others."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, hide_input_in_errors=True)


class Shape(BaseModel):
    """What an answer carries."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class Opening(Shape):
    """A move that is open now: its name, the state it leads to, and why one takes it."""

    name: str
    to: str | None = None
    why: str | None = None


class Outcome(Shape):
    """What became of one of many."""

    id: str
    ok: bool
    code: str | None = None
    error: str | None = None
    result: Any = None


class Outcomes(Shape):
    """What became of each."""

    outcomes: list[Outcome]


def shape(
    name: str, of: type, *, without: Collection[str] = (), example: dict[str, Any] | None = None, **extra: Any
) -> type[BaseModel]:
    """Make the shape of a dataclass, less some fields and with some more."""
    hints = get_type_hints(of)
    own = {field.name: (hints[field.name], ...) for field in fields(of) if field.name not in without}
    more = {key: (kind, ...) for key, kind in extra.items()}
    doc = (of.__doc__ or name).strip().splitlines()[0]
    made: type[BaseModel] = create_model(name, __base__=Shape, __doc__=doc, **{**own, **more})  # type: ignore[call-overload] # fields by name
    if example is not None:
        made.model_config["json_schema_extra"] = {"examples": [example]}
        made.model_rebuild(force=True)
    return made


@cache
def pages(of: type[BaseModel]) -> type[BaseModel]:
    """Make the shape of a page."""
    doc = "A page: some of all, and where the next page begins; `next` is null on the last one."
    listed: Any = list[of]  # type: ignore[valid-type] # a type made at run time
    made: type[BaseModel] = create_model(
        f"{of.__name__}Page", __base__=Shape, __doc__=doc, items=(listed, ...), next=(str | None, ...)
    )
    return made
