"""The commands about accounts: add, list, choose the default, disable, enable, connect anew, remove."""

import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from imprint.cli import session
from imprint.cli.consent import Yes, consent
from imprint.cli.output import AsJson, print_json, print_table, say
from imprint.cli.zone import Zone, chosen, on_wall, written
from imprint.engine.wire import Wire
from imprint.problem import Problem
from imprint.settings import Settings
from imprint.store.db import Database
from imprint.work import account as accounts
from imprint.work.account import Account, Removed, Waiting
from imprint.work.person import OPERATOR
from imprint.work.vault import Vault, platform

Which = Annotated[str, typer.Argument(help="The account's name or id.", metavar="ACCOUNT")]
Answers = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="What the platform asks for; @FILE takes it from a file. What is missing is asked for.",
        metavar="NAME=VALUE",
    ),
]
Redirect = Annotated[
    str | None,
    typer.Option("--redirect-url", help="Where the platform sends you back to.", metavar="URL"),
]

Follow = Annotated[
    bool,
    typer.Option("--follow", help="Go there without a browser; for a platform that asks nothing, as the sandbox."),
]


def register(app: typer.Typer) -> None:
    """Add the commands, under one name."""
    group = typer.Typer(help="Connect the accounts to publish to.", no_args_is_help=True, rich_markup_mode=None)
    group.command()(add)
    group.command()(finish)
    group.command("list")(list_)
    for command in (default, disable, enable, reconnect, remove):
        group.command()(command)
    app.add_typer(group, name="account")


def add(
    on: Annotated[str, typer.Argument(help="The platform; `imprint platforms` lists them.", metavar="PLATFORM")],
    *,
    name: Annotated[str | None, typer.Option("--name", help="What you call it.", metavar="NAME")] = None,
    answers: Answers = None,
    redirect_url: Redirect = None,
    follow: Follow = False,
    as_json: AsJson = False,
) -> None:
    """Connect an account.

    Some platforms want you to come by with a browser: go to the address that is printed, and give the one you are
    sent back to, here or with `imprint account finish`.
    """
    settings = session.begin()
    given = _answers(on, answers or [])
    back = redirect_url or _redirect(settings)

    async def work(database: Database, vault: Vault) -> Account | Waiting:
        return await accounts.begin(database, vault, Wire(), OPERATOR, on, given, back, label=name)

    _connected(settings, work, follow=follow, as_json=as_json)


def finish(
    returned_to: Annotated[str, typer.Argument(help="The address you were sent back to.", metavar="URL")],
    *,
    as_json: AsJson = False,
) -> None:
    """Go on with a sign-in that was begun in a browser."""
    settings = session.begin()

    async def work(database: Database, vault: Vault) -> Account | Waiting:
        return await accounts.finish(database, vault, Wire(), OPERATOR, returned_to)

    _connected(settings, work, as_json=as_json)


def list_(*, zone: Zone = None, as_json: AsJson = False) -> None:
    """List the accounts."""
    settings = session.begin()
    wall = chosen(settings, zone)

    async def work() -> list[Account]:
        async with session.ready_database(settings) as database, database.connection() as connection:
            return await accounts.listed(connection, OPERATOR)

    found = session.run(work())
    if as_json:
        print_json(written([each.as_data() for each in found], wall))
        return
    rows = [
        (a.shown, a.platform, a.name, a.status, "default" if a.is_default else "", a.waiting or "",
         on_wall(a.renewable_until, wall))
        for a in found
    ]  # fmt: skip
    print_table("Accounts", ["name", "platform", "there", "state", "", "waiting", "sign-in ends"], rows)
    for each in found:
        if each.trouble:
            say(f"\n{each.shown}: {each.trouble}")
    if not found:
        say("\nNo account was added yet: run `imprint account add PLATFORM`.")


def default(which: Which, *, as_json: AsJson = False) -> None:
    """Publish to this account when none is named."""
    _change(which, lambda d, a: accounts.make_default(d, OPERATOR, a), "is the default now", as_json=as_json)


def disable(which: Which, *, as_json: AsJson = False) -> None:
    """Leave an account unused; what is scheduled waits."""
    _change(
        which, lambda d, a: accounts.disable(d, OPERATOR, a), "is disabled; what is scheduled waits", as_json=as_json
    )


def enable(which: Which, *, as_json: AsJson = False) -> None:
    """Use an account again."""
    _change(which, lambda d, a: accounts.enable(d, OPERATOR, a), "is enabled", as_json=as_json)


def reconnect(
    which: Which,
    *,
    answers: Answers = None,
    redirect_url: Redirect = None,
    follow: Follow = False,
    as_json: AsJson = False,
) -> None:
    """Sign in to an account anew.

    What was scheduled on it goes on.
    """
    settings = session.begin()

    async def which_one() -> Account:
        async with session.ready_database(settings) as database:
            return await _found(database, which)

    known = session.run(which_one())
    given = _answers(known.platform, answers or [])
    back = redirect_url or _redirect(settings)

    async def work(database: Database, vault: Vault) -> Account | Waiting:
        return await accounts.reconnect(database, vault, Wire(), OPERATOR, known.id, given, back)

    _connected(settings, work, follow=follow, as_json=as_json)


def remove(
    which: Which,
    *,
    cancel_waiting: Annotated[bool, typer.Option("--cancel-waiting", help="Cancel what waits for it.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Remove an account, forget its sign-in and give the access back.

    A platform that cannot be reached does not hold it up; you are then told what to do there.
    """
    settings = session.begin()
    consent(f"Remove {which}, and forget its sign-in?", yes=yes)

    async def work() -> Removed:
        async with session.ready_database(settings) as database:
            known = await _found(database, which)
            vault = Vault.of(settings)
            return await accounts.remove(database, vault, Wire(), OPERATOR, known.id, cancel_waiting=cancel_waiting)

    gone = session.run(work())
    if as_json:
        told = {"removed": True, "revoked": gone.revoked, "trouble": gone.trouble}
        print_json({"id": str(gone.account.id), **told})
        return
    say(f"{gone.account.shown} is removed.")
    if gone.trouble:
        on = gone.account.platform
        say(f"{on} could not be told: {gone.trouble} To be sure, take Imprint's access away in your settings there.")


def _change(which: str, act: Callable[[Database, UUID], Awaitable[object]], done: str, *, as_json: bool) -> None:
    settings = session.begin()

    async def work() -> Account:
        async with session.ready_database(settings) as database:
            known = await _found(database, which)
            await act(database, known.id)
            return await _found(database, str(known.id))

    _tell(settings, session.run(work()), done, as_json=as_json)


def _connected(
    settings: Settings,
    work: Callable[[Database, Vault], Awaitable[Account | Waiting]],
    *,
    follow: bool = False,
    as_json: bool,
) -> None:
    """Begin or finish a sign-in; when it waits for a browser and a person is there, wait with it."""

    async def begun() -> Account | Waiting:
        async with session.ready_database(settings, create=True) as database:
            vault = Vault.of(settings)
            result = await work(database, vault)
            if follow and isinstance(result, Waiting):
                back = await accounts.follow(Wire(), result.url)
                return await accounts.finish(database, vault, Wire(), OPERATOR, back)
            return result

    result = session.run(begun())
    if isinstance(result, Account):
        _tell(settings, result, "is connected", as_json=as_json)
        return
    if as_json:
        print_json(written({"url": result.url, "expiresAt": result.expires_at}, chosen(settings, None)))
        return
    say(f"Go to this address and let Imprint in:\n\n{result.url}\n")
    if not sys.stdin.isatty():
        say("Then run: imprint account finish 'THE ADDRESS YOU WERE SENT BACK TO'")
        return
    back = typer.prompt("The address you were sent back to")

    async def ended() -> Account:
        async with session.ready_database(settings) as database:
            return await accounts.finish(database, Vault.of(settings), Wire(), OPERATOR, back)

    _tell(settings, session.run(ended()), "is connected", as_json=as_json)


async def _found(database: Database, which: str) -> Account:
    async with database.connection() as connection:
        return await accounts.show(connection, OPERATOR, await accounts.find(connection, OPERATOR, which))


def _answers(on: str, given: Sequence[str]) -> dict[str, str]:
    """Read what was given, and ask for what is missing where a person is there to answer."""
    answers: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise Problem("account.bad_answer", f"Write {name}=VALUE.")
        answers[name] = _from_file(value[1:]) if value.startswith("@") else value
    for ask in platform(on).asks:
        if ask.name not in answers and sys.stdin.isatty():
            answers[ask.name] = typer.prompt(
                f"{ask.sentence} ({ask.name})",
                default=ask.default,
                hide_input=ask.secret,
                show_default=bool(ask.default),
            )
    return answers


def _from_file(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise Problem("account.unreadable_answer", f"{path} cannot be read as text.") from None


def _redirect(settings: Settings) -> str:
    return f"http://{settings.host}:{settings.port}/accounts/return"


def _tell(settings: Settings, account: Account, done: str, *, as_json: bool) -> None:
    if as_json:
        print_json(written(account.as_data(), chosen(settings, None)))
        return
    say(f"{account.shown} {done}.")
    if account.trouble:
        say(account.trouble)
