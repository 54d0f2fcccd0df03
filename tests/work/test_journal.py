"""The journal: kept whole or not at all, and one bad result does not keep the others back."""

from uuid import UUID, uuid4

from imprint.work.journal import DAMAGED
from imprint.work.outcome import Ended, Outcome
from imprint.work.record import replay
from tests.work.stage import WEBHOOK, Stage


def kept(publication: UUID, account: UUID, remote_id: str | None) -> str:
    """Write a result down as a worker does."""
    return Ended(publication, 1, Outcome("published", remote_id=remote_id), (), account, 1).text()


async def test_a_result_that_no_database_takes_is_put_aside(play: Stage) -> None:
    """What cannot be read or recorded is kept for a person; the one beside it is recorded."""
    publication = await play.due(on=WEBHOOK)
    account = await play.read("SELECT account_id FROM publication WHERE id = $1", publication)
    await play.read(
        "UPDATE publication SET status = 'running', phase = 'uploading', fence = 1, lease_until = imprint_now()"
    )
    await play.read("INSERT INTO attempt (publication_id, fence) VALUES ($1, 1)", publication)
    folder = play.desk.journal.folder
    folder.mkdir()
    (folder / f"{uuid4()}-1.json").write_text("{")
    bad = await play.due(on=WEBHOOK)
    await play.read(
        "UPDATE publication SET status = 'running', phase = 'uploading', fence = 1, lease_until = imprint_now() "
        "WHERE id = $1",
        bad,
    )
    (folder / f"{bad}-1.json").write_text(kept(bad, account, None))  # a success without an id: the database refuses
    (folder / f"{publication}-1.json").write_text(kept(publication, account, "r1"))
    assert await replay(play.desk) == 1
    assert await play.state(publication) == "success"
    assert len(list(folder.glob(f"*{DAMAGED}"))) == 2
    assert await replay(play.desk) == 0
