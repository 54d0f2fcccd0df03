"""A command whose database goes away in the middle says so, and does not call it a bug."""

import asyncpg
import pytest
import typer

from imprint import main
from imprint.cli import session
from imprint.problem import Exit


@pytest.mark.parametrize("says", ["SELECT pg_terminate_backend(pg_backend_pid())", None])
def test_a_connection_that_is_cut_is_no_bug(
    says: str | None, empty_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the middle of a statement, or between the last one and the end of its transaction."""

    async def work() -> None:
        connection = await asyncpg.connect(empty_url)
        async with connection.transaction():
            if says is not None:
                await connection.execute(says)
            connection.terminate()

    app = typer.Typer()
    app.callback()(lambda: None)
    app.command("work")(lambda: session.run(work()))
    monkeypatch.setattr(main, "program", lambda *_, **__: app)
    assert main.run(["work"]) == Exit.UNAVAILABLE
    assert "bug" not in capsys.readouterr().err
