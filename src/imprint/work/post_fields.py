"""The fields of a post: what a person writes of it, checked, by the names of the JSON."""

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from imprint.decisions.schedule import BadTime, Late, zone_of
from imprint.platforms.registry import PLATFORMS
from imprint.problem import Problem
from imprint.work.naming import to_camel

LONGEST_OVERRIDES = 100_000
# Words for one account stand under its id, before those for its platform.
_ACCOUNT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def _sayable(text: str) -> str:
    # What PostgreSQL cannot keep and JSON cannot carry: NUL, and halves of characters.
    if "\x00" in text or text.encode(errors="replace") != text.encode(errors="surrogatepass"):
        raise ValueError("it contains a NUL character or an unpaired surrogate, which cannot be stored")
    return text


def _zone(name: str) -> str:
    try:
        return zone_of(name).key
    except BadTime as bad:
        raise ValueError(bad.sentence) from None


def _once(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))


def _known_places(overrides: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    for name, changes in overrides.items():
        if name not in PLATFORMS and not _ACCOUNT.fullmatch(name):
            raise ValueError(f"there is no platform {name[:40]!r}")
        try:
            Overridden.model_validate({key: value for key, value in changes.items() if key in OVERRIDABLE})
        except ValidationError as error:
            where, what = _first(error)
            raise ValueError(f"{name}.{where}: {what}") from None
    if len(_sayable(json.dumps(overrides, ensure_ascii=False, allow_nan=False))) > LONGEST_OVERRIDES:
        raise ValueError(f"all together they have {LONGEST_OVERRIDES} letters at most")
    return overrides


def _first(error: ValidationError) -> tuple[str, str]:
    """Say where the first mistake is and what it is, without the value."""
    first = error.errors(include_input=False, include_context=False, include_url=False)[0]
    message = first["msg"].removeprefix("Value error, ").rstrip(".")
    told = "is not a field of a post" if first["type"] == "extra_forbidden" else message[:1].lower() + message[1:]
    return ".".join(str(part) for part in first["loc"]) or "a field", told


Text = Annotated[str, AfterValidator(_sayable)]
Word = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), AfterValidator(_sayable)]
Words = Annotated[tuple[Word, ...], Field(max_length=100), AfterValidator(_once)]
Classification = Literal["nudity", "sexual", "gore", "language", "ideology"]


class Overridden(BaseModel):
    """The fields of a post that can be different for one platform; every other name is an option of the platform."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        hide_input_in_errors=True,
        strict=False,
    )

    title: Annotated[Text, StringConstraints(strip_whitespace=True, max_length=500)] = ""
    description: Annotated[Text, StringConstraints(max_length=200_000)] = ""
    body: Annotated[Text, StringConstraints(max_length=1_000_000)] = ""
    tags: Words = ()
    category_path: Annotated[Word, StringConstraints(max_length=500)] | None = None
    is_mature: bool = False
    mature_level: Literal["strict", "moderate"] | None = None
    mature_classification: tuple[Classification, ...] = ()
    gallery_ids: Words = ()
    allow_comments: bool = True
    allow_free_download: bool = False
    is_ai_generated: bool = False
    no_ai: bool = False
    display_resolution: Annotated[int, Field(ge=0, le=8)] = 0


OVERRIDABLE = frozenset(to_camel(name) for name in Overridden.model_fields)


class Fields(Overridden):
    """Everything a person writes of a post."""

    kind: Literal["artwork", "article"] = "artwork"
    upload_mode: Literal["single", "multiple"] = "single"
    overrides: Annotated[dict[str, dict[str, Any]], AfterValidator(_known_places)] = Field(default_factory=dict)
    late_policy: Late = Late.PUBLISH
    late_hours: Annotated[int, Field(ge=0, le=8784)] | None = None
    zone: Annotated[str, AfterValidator(_zone)] = "UTC"

    def columns(self) -> tuple[object, ...]:
        """Give the values in the order of the statements that write them."""
        return (
            self.kind,
            self.title,
            self.description,
            self.body,
            list(self.tags),
            self.category_path,
            self.is_mature,
            self.mature_level,
            list(self.mature_classification),
            list(self.gallery_ids),
            self.allow_comments,
            self.allow_free_download,
            self.is_ai_generated,
            self.no_ai,
            self.display_resolution,
            self.upload_mode,
            json.dumps(self.overrides),
            str(self.late_policy),
            self.late_hours,
            self.zone,
        )


def checked(given: Mapping[str, object]) -> Fields:
    """Read what a person gave, or say in one sentence what is wrong with it."""
    try:
        fields = Fields.model_validate(dict(given), by_alias=True, by_name=False)
    except ValidationError as error:
        raise Problem("post.invalid", f"{': '.join(_first(error))}.") from None
    if not fields.is_mature and (fields.mature_level or fields.mature_classification):
        raise Problem("post.invalid", "matureLevel, matureClassification: only of a post that is mature.")
    return fields
