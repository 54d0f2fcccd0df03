"""When something may go out: never early, never at a time that was not asked for, whatever clocks on walls do."""

from datetime import UTC, date, datetime, time, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprint.decisions.schedule import (
    BadTime,
    Bounds,
    Every,
    Late,
    Rule,
    Slot,
    Verdict,
    at_once,
    jitter,
    moment,
    occurrences,
    parse,
    refuse,
    shown,
    slot,
    verdict,
    zone_of,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
BOUNDS = Bounds()
MOMENT = timedelta(microseconds=1)
ZONES = {name: ZoneInfo(name) for name in ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe")}
YEARS = range(2025, 2031)

MOMENTS = st.datetimes(datetime(2024, 1, 1), datetime(2032, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - bounds
WALLS = st.datetimes(datetime(2024, 1, 1), datetime(2032, 1, 1))  # noqa: DTZ001 - what hangs on a wall has no zone
ANY_ZONE = st.sampled_from(sorted(ZONES)).map(ZONES.__getitem__)
ROLLS = st.floats(0, 1, exclude_max=True)


def changes(zone: ZoneInfo) -> list[datetime]:
    """Find every moment of 2025-2030 at which the clocks of a zone are changed, by going through all the hours."""
    half_hour = timedelta(minutes=30)
    at, end, found = datetime(YEARS[0], 1, 1, tzinfo=UTC), datetime(YEARS[-1] + 1, 1, 1, tzinfo=UTC), []
    while at < end:
        if at.astimezone(zone).utcoffset() != (at + half_hour).astimezone(zone).utcoffset():
            found.append(at + half_hour)
        at += half_hour
    return found


# Lead, horizon, jitter


@pytest.mark.parametrize(
    ("ahead", "code", "sentence"),
    [
        (timedelta(hours=1) - MOMENT, "schedule.too_soon", "at least 1 hour ahead"),
        (timedelta(0), "schedule.too_soon", "publish now"),
        (-timedelta(days=400), "schedule.too_soon", "at least 1 hour ahead"),
        (timedelta(days=365) + MOMENT, "schedule.too_far", "at most 365 days ahead"),
    ],
)
def test_too_soon_and_too_far_are_refused(ahead: timedelta, code: str, sentence: str) -> None:
    """The sentence names the limit."""
    with pytest.raises(BadTime) as refused:
        refuse(NOW, NOW + ahead, BOUNDS)
    assert refused.value.code == code
    assert sentence in refused.value.sentence


@pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(days=30), timedelta(days=365)])
def test_both_limits_belong_to_what_is_allowed(ahead: timedelta) -> None:
    """Exactly an hour ahead is an hour ahead."""
    assert slot(NOW, NOW + ahead, "UTC", BOUNDS, 0).due_at == NOW + ahead


@pytest.mark.parametrize(
    ("lead", "said"),
    [
        (timedelta(minutes=90), "90 minutes"),
        (timedelta(days=1), "1 day"),
        (timedelta(seconds=1), "1 second"),
        (timedelta(0), "0 seconds"),
    ],
)
def test_a_limit_is_said_in_words(lead: timedelta, said: str) -> None:
    """In the largest unit that fits."""
    with pytest.raises(BadTime, match=f"at least {said} ahead"):
        refuse(NOW, NOW - MOMENT, Bounds(lead=lead))


@given(roll=ROLLS, most=st.integers(0, 3600))
def test_jitter_is_whole_seconds_within_its_bounds(roll: float, most: int) -> None:
    """Never negative, so nothing is early; never more than was allowed."""
    drawn = jitter(roll, Bounds(jitter=timedelta(seconds=most)))
    assert timedelta(0) <= drawn <= timedelta(seconds=most)
    assert drawn.microseconds == 0


def test_jitter_reaches_both_ends() -> None:
    """0 and 300 can both be drawn."""
    assert jitter(0, BOUNDS) == timedelta(0)
    assert jitter(0.999999999, BOUNDS) == timedelta(seconds=300)
    with pytest.raises(ValueError, match="a roll"):
        jitter(1, BOUNDS)


@given(at=MOMENTS, later=MOMENTS, roll=ROLLS)
def test_a_slot_is_never_before_its_time_and_keeps_its_jitter(at: datetime, later: datetime, roll: float) -> None:
    """To move it does not draw again."""
    made = slot(at - timedelta(days=1), at, "Europe/Berlin", BOUNDS, roll)
    assert made.due_at - made.scheduled_at == made.jitter == jitter(roll, BOUNDS)
    assert made.scheduled_at == at
    assert made.moved(later, "UTC") == Slot(later, "UTC", made.jitter)


def test_publish_now_is_due_now() -> None:
    """Chance does not delay what a person wants at once."""
    assert at_once(NOW, "UTC").due_at == NOW
    with pytest.raises(ValueError, match="a slot is a moment"):
        Slot(NOW.replace(tzinfo=None), "UTC")


# Wall clocks


@given(wall=WALLS, zone=ANY_ZONE)
def test_a_wall_clock_time_is_one_moment(wall: datetime, zone: ZoneInfo) -> None:
    """The wall shows it then, and had not shown it before; in a gap it is the moment of the change."""
    at = moment(wall, zone)
    seen = at.astimezone(zone).replace(tzinfo=None)
    if seen == wall:
        assert at.astimezone(zone).fold == 0
    else:
        before = (at - MOMENT).astimezone(zone).replace(tzinfo=None)
        assert before < wall < seen
        assert at.astimezone(zone).utcoffset() != (at - MOMENT).astimezone(zone).utcoffset()


@given(first=WALLS, second=WALLS, zone=ANY_ZONE)
def test_later_on_the_wall_is_not_earlier_in_time(first: datetime, second: datetime, zone: ZoneInfo) -> None:
    """Outside of a repeated hour order is kept; inside it both are the first of the two."""
    low, high = sorted((first, second))
    a, b = moment(low, zone), moment(high, zone)
    # The wall goes back once a year: a time just after the repeated hour can only be later still.
    assert a <= b


@pytest.mark.parametrize("name", sorted(ZONES))
def test_every_change_of_clocks_from_2025_to_2030(name: str) -> None:
    """Two a year in each zone; a skipped time is the moment of the change, a repeated one the first of the two."""
    zone = ZONES[name]
    found = changes(zone)
    assert len(found) == 2 * len(YEARS)
    for change in found:
        before = (change - MOMENT).astimezone(zone)
        old, new = before.utcoffset(), change.astimezone(zone).utcoffset()
        assert old is not None
        assert new is not None
        width = new - old
        on_wall = (change + old).replace(tzinfo=None)  # where the hands stood
        if width > timedelta(0):  # forward: there is a gap
            for into in (timedelta(0), MOMENT, width / 2, width - MOMENT):
                assert moment(on_wall + into, zone) == change
            assert moment(on_wall + width, zone) == change
            assert moment(on_wall - MOMENT, zone) == change - MOMENT
        else:  # back: what was there comes once more
            for ago in (MOMENT, -width / 2, -width):
                assert moment(on_wall - ago, zone) == change - ago
            assert moment(on_wall, zone) == change - width  # the first moment that comes only once again


def test_lord_howe_moves_by_half_an_hour() -> None:
    """The zone is in the list because its change is not a whole hour."""
    zone = ZONES["Australia/Lord_Howe"]
    assert {c.astimezone(zone).utcoffset() for c in changes(zone)} == {timedelta(hours=11), timedelta(hours=10.5)}


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-07-01T18:00", "2026-07-01T16:00:00+00:00"),
        ("2026-01-01T18:00", "2026-01-01T17:00:00+00:00"),
        ("2026-07-01T18:00Z", "2026-07-01T18:00:00+00:00"),
        ("2026-07-01T18:00-05:00", "2026-07-01T23:00:00+00:00"),
        (" 2026-07-01 ", "2026-06-30T22:00:00+00:00"),
        ("2026-03-29T02:30", "2026-03-29T01:00:00+00:00"),
        ("2026-10-25T02:30", "2026-10-25T00:30:00+00:00"),
    ],
)
def test_times_are_read_with_and_without_a_zone(text: str, at: str) -> None:
    """Without one, they are on the wall of the person's zone."""
    assert parse(text, ZONES["Europe/Berlin"]).isoformat() == at


@pytest.mark.parametrize("text", ["", "tomorrow", "18:00", "2026-13-01", "0001-01-01T00:00+14:00"])
def test_what_is_no_time_is_refused(text: str) -> None:
    """With an example of what is one."""
    with pytest.raises(BadTime) as refused:
        parse(text, ZONES["Europe/Berlin"])
    assert refused.value.code == "schedule.bad_time"


@given(at=MOMENTS, zone=ANY_ZONE)
def test_what_is_shown_can_be_read_back(at: datetime, zone: ZoneInfo) -> None:
    """In any zone: the offset is written with it."""
    whole = at.replace(microsecond=0)
    assert parse(shown(whole, zone), ZoneInfo("UTC")) == whole


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "../../etc/passwd", "/etc/localtime", "Europe", "A" * 500])
def test_a_zone_that_is_none_is_refused(name: str) -> None:
    """And never taken for a path."""
    with pytest.raises(BadTime) as refused:
        zone_of(name)
    assert refused.value.code == "schedule.no_zone"
    assert len(refused.value.sentence) < 200


def test_a_zone_by_its_name() -> None:
    """UTC is one too."""
    assert zone_of("Australia/Lord_Howe").key == "Australia/Lord_Howe"
    assert zone_of("UTC").key == "UTC"


# What comes back

RULES = st.one_of(
    st.builds(Rule, st.just(Every.DAY), st.dates(date(2025, 1, 1), date(2030, 1, 1)), st.times(), st.integers(1, 40)),
    st.builds(
        Rule,
        st.just(Every.WEEK),
        st.dates(date(2025, 1, 1), date(2030, 1, 1)),
        st.times(),
        st.integers(1, 10),
        st.frozensets(st.integers(0, 6)),
    ),
    st.builds(
        Rule,
        st.just(Every.MONTH),
        st.dates(date(2025, 1, 1), date(2030, 1, 1)),
        st.times(),
        st.integers(1, 20),
        st.just(frozenset()),
        st.one_of(st.none(), st.integers(1, 31)),
    ),
)


@given(rule=RULES, zone=ANY_ZONE, after=MOMENTS)
def test_a_rule_comes_back_in_order_at_its_time_of_day(rule: Rule, zone: ZoneInfo, after: datetime) -> None:
    """Each is later than the one before and later than `after`, and shows the rule's time unless that was skipped."""
    found = list(islice(occurrences(rule, zone, after), 30))
    assert len(found) == 30
    assert all(a < b for a, b in pairwise([after, *found]))
    for at in found:
        seen = at.astimezone(zone)
        assert seen.date() >= rule.begin
        assert seen.time() == rule.at or moment(datetime.combine(seen.date(), rule.at), zone) == at


@given(rule=RULES, zone=ANY_ZONE, after=MOMENTS)
def test_a_rule_has_no_memory(rule: Rule, zone: ZoneInfo, after: datetime) -> None:
    """Asked again from any of its own moments it goes on with the next, so that a restart changes nothing."""
    found = list(islice(occurrences(rule, zone, after), 6))
    for at, following in pairwise(found):
        assert next(occurrences(rule, zone, at)) == following


@pytest.mark.parametrize("name", sorted(ZONES))
def test_every_day_at_half_past_two_over_all_changes(name: str) -> None:
    """Every date of 2025-2030 has exactly one, also when half past two is skipped or comes twice."""
    zone = ZONES[name]
    rule = Rule(Every.DAY, date(2025, 1, 1), time(2, 30))
    days = (date(2031, 1, 1) - date(2025, 1, 1)).days
    found = list(islice(occurrences(rule, zone, datetime(2024, 1, 1, tzinfo=UTC)), days))
    assert [at.astimezone(zone).date() for at in found] == [date(2025, 1, 1) + timedelta(days=n) for n in range(days)]
    odd = [at for at in found if at.astimezone(zone).time() != time(2, 30)]
    # Lord Howe moves forward at two by half an hour: half past two is the first moment after it.
    assert len(odd) == (0 if name == "Australia/Lord_Howe" else len(YEARS))


def test_weekly_on_several_days() -> None:
    """Tuesdays and Fridays of every second week, from the first of them on."""
    rule = Rule(Every.WEEK, date(2026, 1, 8), time(18), 2, frozenset({1, 4}))
    assert [str(day) for day in islice(rule.dates(), 5)] == [
        "2026-01-09",
        "2026-01-20",
        "2026-01-23",
        "2026-02-03",
        "2026-02-06",
    ]


def test_monthly_on_the_31st_is_the_last_day_of_short_months() -> None:
    """And the 31st again where there is one: it does not wander."""
    rule = Rule(Every.MONTH, date(2027, 12, 31), time(18))
    assert [str(day) for day in islice(rule.dates(), 6)] == [
        "2027-12-31",
        "2028-01-31",
        "2028-02-29",
        "2028-03-31",
        "2028-04-30",
        "2028-05-31",
    ]


def test_a_rule_ends_with_the_calendar() -> None:
    """Without an error."""
    assert len(list(Rule(Every.DAY, date(9999, 12, 30), time(0)).dates())) == 2
    assert len(list(Rule(Every.MONTH, date(9999, 11, 1), time(0)).dates())) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"every": Every.DAY, "interval": 0},
        {"every": Every.DAY, "weekdays": frozenset({1})},
        {"every": Every.WEEK, "weekdays": frozenset({7})},
        {"every": Every.WEEK, "day": 1},
        {"every": Every.MONTH, "day": 32},
        {"every": Every.DAY, "at": time(1, tzinfo=UTC)},
    ],
)
def test_a_rule_that_means_nothing_is_refused(wrong: dict[str, object]) -> None:
    """With the code of a bad rule."""
    given_rule: dict[str, object] = {"begin": date(2026, 1, 1), "at": time(1), **wrong}
    with pytest.raises(BadTime) as refused:
        Rule(**given_rule)  # type: ignore[arg-type] # wrong on purpose
    assert refused.value.code == "schedule.bad_rule"


# What was missed

GRACE, MOST = timedelta(minutes=5), timedelta(hours=24)


@pytest.mark.parametrize(
    ("late", "policy", "expected"),
    [
        (-MOMENT, Late.PUBLISH, Verdict.WAIT),
        (-MOMENT, Late.SKIP, Verdict.WAIT),
        (timedelta(0), Late.SKIP, Verdict.GO),
        (GRACE, Late.ASK, Verdict.GO),
        (GRACE + MOMENT, Late.PUBLISH, Verdict.GO),
        (GRACE + MOMENT, Late.SKIP, Verdict.SKIP),
        (GRACE + MOMENT, Late.ASK, Verdict.ASK),
        (MOST, Late.PUBLISH, Verdict.GO),
        (MOST + MOMENT, Late.PUBLISH, Verdict.ASK),
        (timedelta(days=40), Late.SKIP, Verdict.SKIP),
    ],
)
def test_what_was_missed(late: timedelta, policy: Late, expected: Verdict) -> None:
    """Early never, on time always, late as the person wants it."""
    assert verdict(NOW + late, NOW, policy, MOST, GRACE) is expected


@given(now=MOMENTS, due=MOMENTS, policy=st.sampled_from(Late), most=st.timedeltas(timedelta(0), timedelta(days=9)))
def test_nothing_goes_early_and_everything_gets_a_verdict(
    now: datetime, due: datetime, policy: Late, most: timedelta
) -> None:
    """Whatever the policy."""
    assert (verdict(now, due, policy, most, GRACE) is Verdict.WAIT) == (now < due)
