"""Naming: what a field is called in JSON; asked for every field of every row, so each answer is kept."""

from functools import cache

from pydantic.alias_generators import to_camel as _to_camel


@cache
def to_camel(name: str) -> str:
    """Write a name of ours as JSON has it."""
    return _to_camel(name)
