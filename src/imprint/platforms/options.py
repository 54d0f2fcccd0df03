"""Options: what a person can set for one platform alone; each platform has a type of its own."""

from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from imprint.platforms.failure import Refused
from imprint.platforms.limits import Misfit
from imprint.platforms.work import Work


class Options(BaseModel):
    """The options of a platform, none here; a subclass names its own, and unknown names are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)

    @classmethod
    def of(cls, work: Work, on: str) -> Self:
        """Read the options of a work for the platform that people call so."""
        try:
            return cls.model_validate(dict(work.options))
        except ValidationError:
            sentence = f"The options for {on} are not as they should be."
            raise Refused(f"{on.lower()}.options", sentence) from None

    @classmethod
    def misfits(cls, work: Work, on: str) -> list[Misfit]:
        """Name the options that are not this platform's, or that it does not take as they are."""
        try:
            cls.model_validate(dict(work.options))
        except ValidationError as error:
            names = sorted({".".join(map(str, each["loc"])) for each in error.errors(include_input=False)})
            return [Misfit("fit.options", f"These options are not {on}'s or have bad values: {', '.join(names)}.")]
        return []
