"""Problems over HTTP: the field at fault is named, and no sentence takes its reader to sit at the machine."""

import pytest
from pydantic import ValidationError

from imprint.api.explanations import Next
from imprint.api.problems import field_of
from imprint.api.shape import Given, Text
from imprint.platforms.failure import Refused
from imprint.problem import Problem
from imprint.work.outlook import Outlook


def test_the_field_at_fault_is_named_where_the_request_has_it() -> None:
    """By its code, by whoever raised it, or by what was given."""
    assert field_of(Refused("sign_in.denied", "No.")) == "returnedTo"
    assert field_of(Problem("rule.unknown_field", "No.", field="tags")) == "tags"
    away = Refused("wire.address_not_allowed", "No.")
    assert [field_of(away, given) for given in (["url"], ["answers", "platform"], [])] == ["url", "answers", None]


def test_commands_are_for_the_command_line_alone() -> None:
    """What happens next is told over HTTP without them."""
    told = Outlook("Its batch is paused.", person=True, do=("imprint batch resume x",)).as_data()
    assert "imprint" not in str(told)
    assert Next.model_validate(told).needs_person


def test_a_text_that_cannot_be_stored_says_why() -> None:
    """In words that tell what to take out."""

    class Words(Given):
        words: Text

    with pytest.raises(ValidationError, match="it contains a NUL character"):
        Words(words="a\x00b")
