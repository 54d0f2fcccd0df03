"""How far an account reaches: what a member connects never leads into the machine's own network, whoever calls it."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from imprint.engine.wire import Wire, outside
from imprint.platforms.failure import Refused
from imprint.platforms.webhook import WebhookLogin
from imprint.problem import Problem
from imprint.sandbox.faults import Fault
from imprint.work import account as accounts
from imprint.work.account import Account
from imprint.work.sign_in import signed_in
from tests.work.posts import OWNER
from tests.work.stage import BLUESKY, MASTODON, WEBHOOK, WORDPRESS, Stage


async def connected(play: Stage, wire: Wire, **answers: str) -> Account:
    """Connect a receiver at the sandbox over a wire."""
    login = WebhookLogin.model_validate_json(play.box.login(WEBHOOK, "receiver"))
    given = {"url": login.url.get_secret_value(), "secret": login.secret.get_secret_value(), **answers}
    made = await accounts.begin(play.database, play.desk.vault, wire, OWNER, WEBHOOK, given, "")
    assert isinstance(made, Account)
    return made


async def only_outside(play: Stage, account: UUID) -> None:
    """Let an account be one that a member has connected."""
    async with play.database.transaction(OWNER, "test") as connection:
        opened = await play.desk.vault.get(connection, account)
        await play.desk.vault.put(connection, account, opened.login.model_copy(update={"outside_only": True}))


async def test_a_member_cannot_name_a_private_address(play: Stage) -> None:
    """It is refused when it is connected; for the operator a receiver on this machine is a good one."""
    with pytest.raises(Refused) as refused:
        await connected(play, Wire(allowed=outside))
    assert refused.value.code == "wire.address_not_allowed"
    assert await play.read("SELECT count(*) FROM account") == 0
    mine = await connected(play, Wire())
    publication = await play.due(mine.id)
    await play.publish(publication)
    assert await play.state(publication) == "success"


async def test_a_name_that_leads_inside_later_is_refused_when_it_is_called(play: Stage) -> None:
    """The name had no address when it was connected, and has a private one when something is published."""

    async def nowhere(_host: str, _port: int) -> list[str]:
        raise OSError("no such name")

    async def inside(_host: str, _port: int) -> list[str]:
        return ["127.0.0.1"]

    port = play.box.url.rpartition(":")[2]
    account = await connected(
        play, Wire(resolve=nowhere, allowed=outside), url=f"http://hooks.example:{port}/webhook/x"
    )
    play.desk = replace(play.desk, wire=Wire(resolve=inside))
    publication = await play.due(account.id)
    await play.publish(publication)
    assert await play.state(publication) == "failed"
    assert await play.column("error_code", publication) == "wire.address_not_allowed"
    assert play.box.log.entries("request", WEBHOOK) == []


@pytest.mark.parametrize(("on", "path"), [(BLUESKY, "*putRecord"), (MASTODON, "*/statuses"), (WORDPRESS, "*/posts")])
async def test_neither_a_look_nor_a_renewal_reaches_inside(play: Stage, on: str, path: str) -> None:
    """Whatever is done as such an account goes by the same wire: what was lost is not even looked for there."""
    account = await play.account(on)
    publication = await play.due(account)
    # What WordPress is asked there first only reads, and the look for the post itself is a request of the same path.
    play.fault(Fault.RESET_AFTER, path=path, skip=2 if on == WORDPRESS else 0)
    await play.publish(publication)
    assert await play.state(publication) == "unknown"
    await only_outside(play, account)
    before = len(play.box.log.entries("request", on))
    await play.read("UPDATE publication SET attempts = 7 WHERE id = $1", publication)
    await play.pass_time(timedelta(minutes=61))
    await play.reconcile(publication)
    assert await play.state(publication) == "unknown"
    assert await play.column("looks", publication) == 1  # after the third a person is asked
    with pytest.raises(Problem, match=r"address|sign-in"):
        await signed_in(play.database, play.desk.vault, play.desk.wire, account, refused=2)
    assert len(play.box.log.entries("request", on)) == before


async def test_a_session_that_is_opened_anew_reaches_no_farther(play: Stage) -> None:
    """A platform may make a whole new login of an old one; how far it reaches stays."""
    account = await play.account(BLUESKY, "painter")
    await only_outside(play, account)
    play.box.sites[BLUESKY].spoil("painter", "refresh")
    everywhere = replace(play.desk.wire)
    everywhere.__dict__["outward"] = everywhere  # as if the sandbox were on the public network
    fresh = await signed_in(play.database, play.desk.vault, everywhere, account, refused=2)
    assert fresh.version == 3
    assert fresh.login.outside_only
