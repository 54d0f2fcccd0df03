"""The contract: whatever the document allows, and what it does not, gets an answer that the document describes.

Half of the ids in paths are of things that are there. A stream has no end and is left out; see test_events.
"""

import asyncio
import os
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import jsonschema_rs
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from imprint.api.gate import COOKIE, CSRF_HEADER, OPEN
from imprint.api.openapi import UNSAFE, operations
from imprint.work import session
from tests.api.estate import settle
from tests.api.visitor import Town, Visitor
from tests.work.posts import Author

# So many requests of each operation, sent signed in and not; the whole run takes a quarter of a minute with these few.
EXAMPLES = int(os.environ.get("CONTRACT_EXAMPLES", "2"))
PATIENCE = 60.0
ADMINISTRATOR = "operator"
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


async def document(at: Town) -> dict[str, Any]:
    """Read the document as anybody can."""
    found: dict[str, Any] = await (await at.visitor()).get("/api/openapi.json")
    return found


async def things(at: Town, who: Visitor) -> dict[str, list[str]]:
    """Make something of every kind that a path can name, and posts in every state."""
    estate = await settle(at, who)
    author = Author(at.database, estate.person)
    planned, failed, unknown = [await author.brought(state) for state in ("pending", "failed", "unknown")]
    drafts = [await author.draft(), await author.review(kind="article", body="Words.")]
    known = {name: [str(each)] for name, each in estate.things.items()}
    known["post"] += [str(each) for each in (planned, failed, unknown, *drafts)]
    known["publication"] += [str(await author.publication(each)) for each in (planned, failed, unknown)]
    known["content"].append(str(await author.content(confirmed=False)))
    known["file"].append(str((await author.show(drafts[0])).files[0].id))
    known["person"] = [(await at.invited(who, "bob")).signed["personId"]]  # on whom nothing here depends
    known["token"] = [uuid4().hex]  # one that was signed would do for one of many
    return known


def answers(made: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Walk through every body and every good answer that is JSON."""
    for _, _, operation in operations(made):
        good = [each for status, each in operation["responses"].items() if status.startswith("2")]
        for part in (operation.get("requestBody", {}), *good):
            if "application/json" in part.get("content", {}):
                yield part["content"]["application/json"]


async def test_every_operation_has_an_example_that_fits(at: Town) -> None:
    """Bodies and answers are shown as they may be, names say what they are of, and every change takes a key."""
    made = await document(at)
    for part in answers(made):
        fits = jsonschema_rs.Draft202012Validator({**part["schema"], "components": made["components"]})
        assert not list(fits.iter_errors(part["example"])), part
    assert not [name for name in made["components"]["schemas"] if "__" in name], "two shapes have the same name"
    for method, path, operation in operations(made):
        keyed = "Idempotency-Key" in {each["name"] for each in operation.get("parameters", ())}
        assert keyed == (method in UNSAFE and operation["x-scope"] != OPEN), (method, path)


async def test_whatever_is_sent_the_answer_is_as_described(at: Town) -> None:
    """Every operation, signed in and not, with what it allows and what it does not: no 500, no other shape."""
    ada = await at.first()
    made = await document(at)
    known = await things(at, ada)
    loop = asyncio.get_running_loop()

    async def opened() -> tuple[str, str]:
        begun = await session.open_for(at.database, ADMINISTRATOR, address="127.0.0.1")
        async with at.database.connection() as connection:
            caller = await session.caller(connection, begun.secret)
        assert caller is not None
        return begun.secret, caller.csrf

    def signed_in() -> requests.Session:
        """Begin a session of its own for each operation: one of them ends it."""
        secret, csrf = asyncio.run_coroutine_threadsafe(opened(), loop).result()
        client = browser()
        client.cookies.set(COOKIE, secret)
        client.headers[CSRF_HEADER] = csrf
        return client

    def run() -> tuple[int, list[str]]:
        sent, wrong = 0, []
        nobody = browser()
        listed = []
        for found in schemathesis.openapi.from_dict(made).get_all_operations():
            assert isinstance(found, Ok)
            listed.append(found.ok())
        # What removes things comes last, so that the others find some.
        for operation in sorted(listed, key=lambda each: each.method == "delete"):
            raw = made["paths"][operation.path][operation.method]
            if "text/event-stream" in raw["responses"].get("200", {}).get("content", {}):
                continue  # it ends when whoever reads it goes
            try:
                sent += exercise(operation, raw, known, at.url, signed_in(), nobody)
            except Exception as error:  # noqa: BLE001 - all of them are told, not only the first
                wrong.append(f"{operation.method} {operation.path}: {error}")
        return sent, wrong

    sent, wrong = await asyncio.to_thread(run)
    assert not wrong, "\n\n".join(wrong)
    assert sent >= len(made["paths"])


def exercise(
    operation: Any,
    raw: dict[str, Any],
    known: dict[str, list[str]],
    url: str,
    somebody: requests.Session,
    nobody: requests.Session,
) -> int:
    """Send many requests of one operation, and give how many there were."""
    sent = 0
    modes = [schemathesis.GenerationMode.POSITIVE]
    if raw.get("parameters") or raw.get("requestBody"):
        modes.append(schemathesis.GenerationMode.NEGATIVE)
    cases = st.one_of([operation.as_strategy(mode) for mode in modes])

    @seed(7)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases, st.data())
    def send(case: Any, data: st.DataObject) -> None:
        nonlocal sent
        for name in case.path_parameters or {}:
            if not data.draw(st.booleans(), "made up"):  # the first that is drawn is the plainest: a real one
                case.path_parameters[name] = data.draw(st.sampled_from(known[name]))
        if raw["x-scope"] != OPEN:
            answer = case.call(base_url=url, session=nobody, timeout=PATIENCE)
            case.validate_response(answer, checks=CHECKS)
            # What is too large is refused at the door, before it is read or anybody asks whose it is.
            assert answer.status_code in {400, 401, 404, 405, 413}, (case, answer.status_code)
        # A key or a cookie that was made up would count for more than the session.
        case.headers.pop("Authorization", None)
        case.cookies.pop(COOKIE, None)
        case.validate_response(case.call(base_url=url, session=somebody, timeout=PATIENCE), checks=CHECKS)
        sent += 1

    send()
    return sent


def browser() -> requests.Session:
    """Give a client that asks nobody else for anything."""
    client = requests.Session()
    client.trust_env = False
    return client
