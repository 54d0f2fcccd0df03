"""Faults: what was asked for happens, as often as it was asked for, and by chance the same for the same seed."""

import pytest

from imprint.sandbox.faults import Fault, Faults, Rule


def test_the_next_calls_to_a_path() -> None:
    """A rule is used up by the calls it was meant for, and by no others."""
    faults = Faults()
    faults.next(Fault.BLANK, "/api/*/submit", times=2)
    assert faults.pick("deviantart", "/other") == []
    assert [rule.does for rule in faults.pick("deviantart", "/api/v1/submit")] == [Fault.BLANK]
    assert len(faults.pick("deviantart", "/api/v1/submit")) == 1
    assert faults.pick("deviantart", "/api/v1/submit") == []


def test_a_rule_can_be_for_one_site_for_ever_and_let_some_pass() -> None:
    """Site, number and the ones to let pass can be set."""
    faults = Faults()
    faults.add(Rule(Fault.RESET_AFTER, site="webhook", times=None, skip=2))
    assert faults.pick("deviantart", "/") == []
    assert [len(faults.pick("webhook", "/")) for _ in range(5)] == [0, 0, 1, 1, 1]
    faults.clear()
    assert faults.pick("webhook", "/") == []


def test_a_delay_comes_on_top() -> None:
    """A call can be late and lost; two rules of one kind wait for each other."""
    faults = Faults()
    faults.next(Fault.LATENCY, seconds=1)
    faults.next(Fault.RESET_BEFORE)
    faults.next(Fault.BLANK)
    assert {rule.does for rule in faults.pick("x", "/")} == {Fault.LATENCY, Fault.RESET_BEFORE}
    assert {rule.does for rule in faults.pick("x", "/")} == {Fault.BLANK}


def test_chance_is_the_same_for_the_same_seed() -> None:
    """A run that found something can be run again."""

    def run(seed: int) -> list[int]:
        faults = Faults(seed)
        faults.add(Rule(Fault.BLANK, times=None, chance=0.3))
        return [len(faults.pick("x", "/")) for _ in range(1000)]

    assert run(7) == run(7) != run(8)
    assert 230 < sum(run(7)) < 370


def test_a_rule_from_outside_is_looked_at() -> None:
    """What is no rule is not taken for one."""
    assert Rule.heard({"does": "blank", "times": 3}).times == 3
    for bad in ({}, {"does": "explode"}, {"does": "blank", "bogus": 1}):
        with pytest.raises((ValueError, TypeError, KeyError)):
            Rule.heard(bad)
