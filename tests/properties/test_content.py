"""Content, whatever is done with it and in whatever order: states follow from bytes, and nothing is ever forgotten."""

import asyncio
import os
from collections.abc import Awaitable, Iterator
from contextlib import ExitStack, asynccontextmanager
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from imprint.blobs.store import verified
from imprint.blobs.tally import Promise
from imprint.problem import Problem
from imprint.store.embedded import Server
from imprint.work import content_moves as moves
from imprint.work import mismatch
from imprint.work.backfill import Options, backfill
from imprint.work.upload import Wanted, ask_again, confirm, reap
from tests.conftest import TEMPLATE, _created
from tests.work.scene import JPEG, OWNER, PNG, Scene, scene
from tests.work.test_derive import Flaky

Value = TypeVar("Value")
POISON = JPEG[: len(JPEG) // 2]
MOST_CRASHES = 3
MOST_CONTENTS = 6
EXAMPLES = int(os.environ.get("HYPOTHESIS_EXAMPLES", "25"))


class Model:
    """What a content should be by now."""

    def __init__(self, url: str, data: bytes) -> None:
        self.url = url
        self.data = data
        self.status = "created"
        self.code: str | None = None
        self.used = False
        self.arrived = False  # the bytes of the last try are in the store
        self.verified = False
        self.deleted = False
        self.overdue = False  # its time was over while it was deleted; the chore sees that when it is restored
        self.crashes = 0

    @property
    def kind(self) -> str:
        """Say what type the bytes are."""
        return "image/png" if self.data == PNG else "image/jpeg"

    def fail(self, code: str) -> None:
        """Fail for a reason."""
        self.status, self.code = "failed", code


class Machine(RuleBasedStateMachine):
    """Uploads, confirms, derives, breaks, retries and deletes, and compares with the model after each step."""

    runner: asyncio.Runner
    at: Scene
    blobs: Flaky

    def __init__(self) -> None:
        super().__init__()
        self.models: dict[UUID, Model] = {}
        self.blobs.broken = False
        self.run(self.at.forget_jobs())
        self.sql("DELETE FROM derivation")
        self.sql("DELETE FROM object")
        self.sql("DELETE FROM content")

    def run(self, work: Awaitable[Value]) -> Value:
        """Wait for something."""

        async def wait() -> Value:
            return await work

        return self.runner.run(wait())

    def pick(self, data: st.DataObject, *states: str) -> UUID:
        """Draw a content: any, but rather one with which the step makes sense."""
        sensible = [
            which for which, model in self.models.items() if ("deleted" if model.deleted else model.status) in states
        ]
        return data.draw(st.sampled_from([*sensible * 4, *self.models]))

    def code_of(self, work: Awaitable[object]) -> str | None:
        """Do something and give the code of what went wrong."""
        try:
            self.run(work)
        except Problem as problem:
            return problem.code
        return None

    def sql(self, statement: str, *values: object) -> list[Any]:
        """Run a statement."""

        async def go() -> list[Any]:
            async with self.at.database.connection() as connection:
                return list(await connection.fetch(statement, *values))

        return self.run(go())

    @initialize()
    def some(self) -> None:
        """Begin with a content in each of the states that take many steps to come to."""
        _, good, poison, made = (self._asked(data) for data in (PNG, JPEG, POISON, PNG))
        for which in (made, good, poison):
            self._sent(which, "right")
            self._confirmed(which)
            if which == made:
                self.deliver()

    @precondition(lambda self: len(self.models) < MOST_CONTENTS)
    @rule(data=st.sampled_from([PNG, JPEG, POISON]))
    def ask(self, data: bytes) -> None:
        """Ask for an upload."""
        self._asked(data)

    def _asked(self, data: bytes) -> UUID:
        kind = "image/png" if data == PNG else "image/jpeg"
        asked = self.run(self.at.ask(data, kind))
        self.models[asked.file_id] = Model(asked.upload_url, data)
        return asked.file_id

    @rule(data=st.data(), sent=st.sampled_from(["right", "right", "wrong", "short"]))
    def send(self, data: st.DataObject, sent: str) -> None:
        """Send bytes, right or wrong, to the newest URL."""
        self._sent(self.pick(data, "created", "uploading"), sent)

    def _sent(self, which: UUID, sent: str) -> None:
        model = self.models[which]
        data = {"right": model.data, "wrong": model.data[:-1] + b"?", "short": model.data[:-1]}[sent]
        code = self.code_of(self.at.send(model.url, data))
        if model.used or model.verified or model.deleted or model.status == "failed":
            assert code == "upload.used"
        elif self.blobs.broken:
            assert code == "blob.unreachable"
            model.status = "uploading"
        elif sent == "right":
            assert code is None
            model.status, model.used, model.arrived = "uploading", True, True
        else:
            assert code == ("blob.wrong_hash" if sent == "wrong" else "blob.wrong_size")
            model.used = True
            model.fail(code)

    @rule(data=st.data())
    def confirm(self, data: st.DataObject) -> None:
        """Confirm an upload, at any time and any number of times."""
        self._confirmed(self.pick(data, "uploading"))

    def _confirmed(self, which: UUID) -> None:
        model = self.models[which]
        code = self.code_of(confirm(self.at.database, self.at.stores, which, OWNER))
        if model.deleted:
            assert code == "content.missing"
        elif model.verified:
            assert code is None
        elif not model.arrived:
            assert code == "upload.missing"
        else:
            assert code is None
            model.status, model.code, model.verified = "uploaded", None, True

    @rule(data=st.data())
    def ask_again(self, data: st.DataObject) -> None:
        """Ask for another URL."""
        which = self.pick(data, "failed", "uploading")
        model = self.models[which]
        wanted = Wanted("a", model.kind, len(model.data), sha256(model.data).hexdigest())
        again = ask_again(self.at.database, self.at.stores, self.at.settings, which, wanted, OWNER)
        if model.verified or model.deleted:
            assert self.code_of(again) == "upload.not_open"
        else:
            model.url = self.run(again).upload_url
            model.status, model.code, model.used, model.arrived = "uploading", None, False, False

    @rule(data=st.data())
    def expire(self, data: st.DataObject) -> None:
        """Let the time of an upload be over, and the chore come."""
        which = self.pick(data, "created", "uploading")
        model = self.models[which]
        self.sql("UPDATE object SET expires_at = imprint_now() - interval '1 day' WHERE content_id = $1", which)
        model.overdue = model.status in ("created", "uploading")
        self.reap()

    def reap(self) -> None:
        """Let the chore come that ends uploads whose time is over."""
        self.run(reap(self.at.database, self.at.stores))
        for each in self.models.values():
            if not each.overdue or each.deleted:
                continue
            each.overdue = False
            if each.arrived:
                each.status, each.verified = "uploaded", True
            else:
                each.used = True  # its URL is good for nothing any more
                each.fail("upload.expired")

    @rule()
    def deliver_soon(self) -> None:
        """Deliver more often than any other step is taken, as a worker does."""
        self.deliver()

    @rule()
    def deliver(self) -> None:
        """Deliver every job in the queue; one that fails stays there."""
        for job in self.run(self.at.jobs()):
            which = UUID(job)
            model = self.models[which]
            code = self.code_of(self.at.derive(which))
            if not model.deleted and model.status in ("uploaded", "processing"):
                if model.crashes >= MOST_CRASHES:
                    model.fail("quarantined")
                    model.crashes = 0
                elif model.data == POISON:
                    model.fail("image.truncated")
                elif self.blobs.broken:
                    assert code == "blob.unreachable"
                    model.status, model.crashes = "processing", 0
                else:
                    model.status, model.code, model.crashes = "processed", None, 0
            if code is None:
                self.sql("DELETE FROM pgqueuer WHERE payload = $1", job.encode())

    @rule(data=st.data())
    def die(self, data: st.DataObject) -> None:
        """Let a worker take a content and die; its lease ends by itself."""
        which = self.pick(data, "uploaded", "processing")
        model = self.models[which]
        claimed = self.run(self.at.deriver._claim(which))
        assert (claimed is not None) == (
            not model.deleted and model.status in ("uploaded", "processing") and model.crashes < MOST_CRASHES
        )
        if claimed is not None:
            model.status = "processing"
            model.crashes += 1
            self.sql("UPDATE derivation SET lease_until = imprint_now() - interval '1 s' WHERE lease_until IS NOT NULL")
        elif model.crashes >= MOST_CRASHES and model.status == "processing" and not model.deleted:
            model.fail("quarantined")
            model.crashes = 0

    @rule(broken=st.booleans())
    def store(self, broken: bool) -> None:  # noqa: FBT001 - drawn by Hypothesis
        """Let the store break, or come back."""
        self.blobs.broken = broken

    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        """Try a failed content again."""
        which = self.pick(data, "failed")
        model = self.models[which]
        code = self.code_of(moves.retry(self.at.database, which, OWNER))
        if model.deleted:
            assert code == "content.missing"
        elif model.status != "failed":
            assert code == "content.no_such_move"
        elif not model.verified:
            assert code == "content.no_bytes"
        else:
            assert code is None
            model.status, model.code, model.crashes = "processing", None, 0

    @rule(data=st.data())
    def make_again(self, data: st.DataObject) -> None:
        """Let all variants be made again."""
        which = self.pick(data, "processed")
        model = self.models[which]
        code = self.code_of(moves.derive_again(self.at.database, self.at.settings, which, OWNER))
        if not model.deleted and model.status in ("uploaded", "processed"):
            assert code is None
            model.status = "processing"
        else:
            assert code in ("content.missing", "content.no_such_move")

    @rule(data=st.data())
    def archive(self, data: st.DataObject) -> None:
        """Put a content away."""
        which = self.pick(data, "processed")
        model = self.models[which]
        code = self.code_of(moves.archive(self.at.database, which, OWNER))
        if not model.deleted and model.status in ("uploaded", "processed"):
            assert code is None
            model.status = "archived"
        else:
            assert code in ("content.missing", "content.no_such_move")

    @rule(data=st.data(), force=st.booleans())
    def delete(self, data: st.DataObject, force: bool) -> None:  # noqa: FBT001
        """Delete a content."""
        which = self.pick(data, "processing", "processed")
        model = self.models[which]
        code = self.code_of(moves.delete(self.at.database, self.at.settings, which, OWNER, force=force))
        if model.deleted:
            assert code == "content.missing"
        elif model.status == "processing" and not force:
            assert code == "content.processing"
        else:
            assert code is None
            model.deleted = True

    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        """Take a deletion back."""
        which = self.pick(data, "deleted")
        model = self.models[which]
        code = self.code_of(moves.restore(self.at.database, which, OWNER))
        assert code == (None if model.deleted else "content.gone")
        model.deleted = False
        self.reap()

    @rule(data=st.data())
    def damage(self, data: st.DataObject) -> None:
        """Damage a variant, and let backfill see it."""
        which = self.pick(data, "processed")
        model = self.models[which]
        keys = self.sql(
            "SELECT o.key FROM derivation d JOIN object o ON o.id = d.object_id"
            " WHERE d.parent_id = $1 AND d.variant = 'full' AND d.status = 'processed'",
            which,
        )
        if not keys or model.deleted or model.status == "archived":
            return
        file = self.at.folder / "objects" / keys[0][0]
        file.write_bytes(file.read_bytes()[:-1] + b"?")
        report = self.run(backfill(self.at.database, self.at.stores, self.at.settings, Options(fix_status=True)))
        assert report.broken_variants == 1
        model.status, model.code = "processing", None

    @invariant()
    def agrees(self) -> None:
        """Every content is what the model says, and may be downloaded when it should be."""
        rows = self.sql(
            "SELECT id, status, error_code, deleted_at IS NOT NULL FROM content WHERE id = ANY ($1)", list(self.models)
        )
        assert {row[0]: tuple(row)[1:] for row in rows} == {
            which: (model.status, model.code, model.deleted) for which, model in self.models.items()
        }

    @invariant()
    def nothing_is_forgotten(self) -> None:
        """Whatever waits for a worker has a job, and the three tables agree."""
        jobs = set(self.run(self.at.jobs()))
        for which, model in self.models.items():
            if not model.deleted and model.status in ("uploaded", "processing"):
                assert str(which) in jobs

        async def look() -> list[mismatch.Mismatch]:
            async with self.at.database.connection() as connection:
                return await mismatch.states(connection)

        assert self.run(look()) == []

    @invariant()
    def what_is_recorded_exists(self) -> None:
        """Every object that is called verified is in the store and has its hash."""
        rows = self.sql(
            "SELECT o.key, o.size, o.sha256 FROM object o JOIN content c ON c.id = o.content_id"
            " WHERE o.content_id = ANY ($1) AND o.sha256 IS NOT NULL AND o.deleted_at IS NULL",
            list(self.models),
        )
        for key, size, digest in rows:
            self.run(verified(self.blobs, key, Promise(size, digest)))

    @invariant()
    def the_audit_is_a_chain(self) -> None:
        """Every line begins where the one before it ended."""
        rows = self.sql("SELECT row_id, source, target FROM audit ORDER BY row_id, id")
        for one, next_ in pairwise(rows):
            assert next_["source"] == (one["target"] if one["row_id"] == next_["row_id"] else None)


@pytest.fixture
def machine(server_and_url: tuple[str, asyncio.Runner], home: Path) -> Iterator[type[Machine]]:
    """Give the machine a database, a store and a maker that all examples share."""
    url, runner = server_and_url
    blobs = Flaky(home / "blobs")
    entered = scene(url, home, blobs)
    at = runner.run(entered.__aenter__())
    with ExitStack() as stack:
        stack.callback(lambda: runner.run(entered.__aexit__(None, None, None)))
        yield type("Bound", (Machine,), {"at": at, "runner": runner, "blobs": blobs})


@pytest.fixture
def server_and_url(server: Server) -> Iterator[tuple[str, asyncio.Runner]]:
    """Make a database from a test that is not async itself."""
    with asyncio.Runner() as runner:
        made = asynccontextmanager(_created)(server, TEMPLATE)
        yield runner.run(made.__aenter__()), runner
        runner.run(made.__aexit__(None, None, None))


def test_content_is_what_its_bytes_make_of_it(machine: type[Machine]) -> None:
    """In any order of uploads, confirmations, deliveries, deaths, retries and deletions."""
    chosen = settings(
        max_examples=EXAMPLES, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
    )
    try:
        run_state_machine_as_test(machine, settings=chosen)
    except SystemError as error:
        # A fault of CPython 3.11 itself, in ast.parse, which Hypothesis uses to print: it says nothing about content.
        if "recursion depth mismatch" not in str(error):
            raise
        run_state_machine_as_test(machine, settings=chosen)
