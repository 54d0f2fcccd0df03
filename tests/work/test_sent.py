"""What was sent, shown afterwards: the requests of a publication that is out, made again of what was frozen."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest
from pydantic import SecretStr

from imprint.work.dry_run import sent
from imprint.work.vault import Vault
from tests.work.stage import DEVIANTART, WEBHOOK, Stage, stage


@pytest.fixture
async def at(database_url: str, home: Path) -> AsyncIterator[Stage]:
    """Give a stage."""
    async with stage(database_url, home) as made:
        yield made


async def test_the_requests_of_what_is_out(at: Stage) -> None:
    """The upload and the request that publishes, with what the platform called the file; no secret is in them."""
    publication = await at.due(on=DEVIANTART)
    assert await sent(at.database, at.at.stores, Vault.of(at.at.settings), publication) == ()
    await at.publish(publication)
    assert await at.state(publication) == "success"
    upload, publish = await sent(at.database, at.at.stores, Vault.of(at.at.settings), publication)
    assert "stash/submit" in upload.shown["url"]
    assert "stash/publish" in publish.shown["url"]
    file = await at.read("SELECT remote_id FROM remote_file WHERE publication_id = $1", publication)
    assert ["itemid", file] in [[name, str(value)] for name, value in publish.shown["body"]]
    text = json.dumps([upload.as_data(), publish.as_data()])
    secrets = await _secrets(at, publication)
    assert secrets
    assert not [secret for secret in secrets if secret in text]


async def test_what_was_sent_is_told_with_its_words(at: Stage) -> None:
    """An article to a receiver: what it said, and not the secret that signs it."""
    publication = await at.due(on=WEBHOOK, files=0, kind="article", body="Once upon a time")
    await at.publish(publication)
    told = await sent(at.database, at.at.stores, Vault.of(at.at.settings), publication)
    text = json.dumps([each.as_data() for each in told])
    assert "Once upon a time" in text
    assert "whsec_" not in text


async def _secrets(at: Stage, publication: UUID) -> list[str]:
    async with at.database.connection() as connection:
        account = await connection.fetchval("SELECT account_id FROM publication WHERE id = $1", publication)
        login = (await at.desk.vault.get(connection, account)).login
    return [value.get_secret_value() for _, value in login if isinstance(value, SecretStr)]
