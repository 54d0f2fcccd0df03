"""A problem: what went wrong, in one sentence a person can act on."""

from enum import IntEnum
from typing import ClassVar


class Exit(IntEnum):
    """The exit codes scripts can trust; each door maps a problem to one of them."""

    OK = 0
    FAILED = 1  # it was tried and did not work
    USAGE = 2  # the command or its arguments are wrong
    SETTINGS = 3  # a setting is unknown or has a bad value
    BUSY = 4  # somebody else holds what is needed
    UNAVAILABLE = 5  # the database, the disk or another service cannot be used
    VERSION = 6  # the database and this program do not fit together
    ATTENTION = 7  # a check ran and found something a person should look at


class Problem(Exception):  # noqa: N818 - it is a noun of the glossary, not an accident
    """Stops what is being done; carries a stable code for programs, a sentence for people, maybe the field at fault."""

    exit: ClassVar[Exit] = Exit.FAILED

    def __init__(self, code: str, sentence: str, *, field: str | None = None) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
        self.field = field


class BadSettings(Problem):
    """A setting is unknown or its value cannot be used."""

    exit = Exit.SETTINGS


class Busy(Problem):
    """Somebody else holds what is needed."""

    exit = Exit.BUSY


class Unavailable(Problem):
    """The database, the disk or another service cannot be used as it is."""

    exit = Exit.UNAVAILABLE


class WrongVersion(Problem):
    """The database and this program do not fit together."""

    exit = Exit.VERSION
