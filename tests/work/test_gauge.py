"""The gauge: what a platform tells of its rate is heard before it refuses a call."""

from datetime import timedelta

from imprint.engine import pace
from imprint.engine.wire import Wire
from imprint.platforms.mastodon import Mastodon
from imprint.platforms.mastodon_sign_in import MastodonLogin
from imprint.sandbox.server import sandbox
from imprint.store.query import Connection
from imprint.work.gauge import Gauge
from tests.platforms.recorded import answer
from tests.platforms.works import work

MASTODON = Mastodon()


def test_of_several_answers_the_tightest_counts() -> None:
    """Statuses and files are counted apart; whichever is scarcer decides, and one that says nothing changes nothing."""
    gauge = Gauge(MASTODON)
    date = {"date": "Mon, 16 Nov 2026 01:00:00 GMT", "x-ratelimit-reset": "2026-11-16T01:10:00.000000Z"}
    for left, rest in (("300", 0), ("10", 120), ("299", 120), ("7", 300), ("9", 300)):
        gauge.read(answer({}, 200, **date, **{"x-ratelimit-remaining": left}))
        assert gauge.rest == timedelta(seconds=rest)
    gauge.read(answer({}))
    assert gauge.rest == timedelta(seconds=300)


async def test_a_paced_run_of_500_is_never_refused(connection: Connection) -> None:
    """Three hundred statuses in three hours is all that is taken: five hundred go out, and no call is answered 429."""
    passed = 0.0
    async with sandbox() as box:
        login = MastodonLogin.model_validate_json(box.login("mastodon", "artist"))
        for _ in range(500):
            wait = await pace.take(connection, "account:a", pace.PUBLISHING)
            passed += max(wait.total_seconds(), 0)
            await connection.execute("SELECT set_config('imprint.clock_offset', $1, false)", f"{passed} s")
            box.sites["mastodon"].ahead = passed
            gauge, made = Gauge(MASTODON), work(files=())
            await MASTODON.check(gauge.on(Wire().within(10)), login, made)
            await MASTODON.publish(gauge.on(Wire().within(10)), login, made)
            if gauge.rest:
                await pace.rest(connection, "account:a", pace.PUBLISHING, gauge.rest)
        assert len(box.log.effects("mastodon")) == 500
        assert box.log.entries("too many") == []
    assert passed < timedelta(hours=6).total_seconds()
