"""Settings: each a name, a default and a sentence; whatever is wrong stops the start and never shows a value."""

import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from imprint.problem import BadSettings, Exit
from imprint.settings import Settings, load, variable

CANARY = "canary-7f3a"


def refused(environment: dict[str, str]) -> BadSettings:
    """Load settings that are wrong and give what was said about them."""
    with pytest.raises(BadSettings) as caught:
        load(environment)
    return caught.value


def test_without_any_variable_every_setting_has_its_default() -> None:
    """An empty environment is a good one."""
    settings = load({})
    assert settings.database_url is None
    assert (settings.host, settings.port, settings.workers, settings.concurrency) == ("127.0.0.1", 7600, 1, 20)
    assert (settings.log_format, settings.log_level) == ("auto", "info")
    assert settings.home == (Path("/var/lib/imprint") if os.geteuid() == 0 else Path.home() / ".imprint")


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_has_a_default_and_a_sentence(name: str) -> None:
    """A setting without either cannot be added."""
    field = Settings.model_fields[name]
    assert not field.is_required()
    assert field.description
    assert field.description[0].isupper()
    assert field.description.endswith((".", "…"))


def test_only_the_given_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables of the process count only when nothing else was given, also those pydantic would find."""
    monkeypatch.setenv("IMPRINT_PORT", "1234")
    monkeypatch.setenv("imprint_host", "0.0.0.1")
    assert load({}).port == 7600
    assert load({}).host == "127.0.0.1"
    monkeypatch.delenv("imprint_host")
    assert load().port == 1234
    monkeypatch.setenv("IMPRINT_PRT", "1")
    assert "IMPRINT_PRT" in refused(dict(os.environ)).sentence


def test_values_are_taken_from_their_variables() -> None:
    """A name in capitals after the prefix is all there is to know."""
    settings = load({"IMPRINT_PORT": "0", "IMPRINT_LOG_LEVEL": "debug", "IMPRINT_KEEP_BACKUPS": "9", "PORT": "1"})
    assert (settings.port, settings.log_level, settings.keep_backups) == (0, "debug", 9)


def test_an_empty_value_is_the_default() -> None:
    """`IMPRINT_PORT=` in a service file means that nobody chose a port."""
    assert load(dict.fromkeys(map(variable, Settings.model_fields), "")) == load({})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("IMPRINT_PROT", "IMPRINT_PROT is not a setting; did you mean IMPRINT_PORT?"),
        ("IMPRINT_DATABSE_URL", "IMPRINT_DATABSE_URL is not a setting; did you mean IMPRINT_DATABASE_URL?"),
        ("imprint_port", "imprint_port is not a setting; did you mean IMPRINT_PORT?"),
        ("Imprint_Log_Level", "Imprint_Log_Level is not a setting; did you mean IMPRINT_LOG_LEVEL?"),
        ("IMPRINT_XYZZY", "IMPRINT_XYZZY is not a setting; see docs/settings.md."),
        ("IMPRINT_", "IMPRINT_ is not a setting; see docs/settings.md."),
    ],
)
@pytest.mark.parametrize("value", [CANARY, ""])
def test_an_unknown_name_stops_the_start_and_the_right_one_is_suggested(name: str, said: str, value: str) -> None:
    """A typing error is never a setting that silently does nothing, and its value is not repeated."""
    problem = refused({name: value})
    assert (problem.code, problem.sentence, problem.exit) == ("settings.unknown", said, Exit.SETTINGS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", CANARY),
        ("port", "65536"),
        ("port", "-1"),
        ("workers", "1.5"),
        ("concurrency", "1"),
        ("log_format", CANARY),
        ("log_level", "INFO "),
        ("lease_seconds", "4"),
        ("keep_backups", "0"),
        ("home", f"~{CANARY}/x"),
    ],
)
def test_a_bad_value_names_its_variable_and_is_not_shown(name: str, value: str) -> None:
    """What was typed may be a secret in the wrong place, so neither the sentence nor its causes repeat it."""
    problem = refused({variable(name): value})
    assert problem.code == "settings.invalid"
    assert problem.sentence.startswith(f"{variable(name)} has a bad value: ")
    assert problem.sentence.endswith(".")
    assert CANARY not in repr(problem)
    assert problem.__cause__ is None
    assert problem.__suppress_context__


def test_every_complaint_is_made_at_once() -> None:
    """A person mends all of it in one go."""
    problem = refused({"IMPRINT_PORT": CANARY, "IMPRINT_WORKERS": "-1", "IMPRINT_PROT": CANARY, "IMPRINT_XYZZY": "1"})
    for name in ("IMPRINT_PORT ", "IMPRINT_WORKERS ", "IMPRINT_PROT ", "IMPRINT_XYZZY "):
        assert problem.sentence.count(name) == 1
    assert CANARY not in problem.sentence


def test_a_secret_does_not_show_itself() -> None:
    """The database's URL may hold a password: neither repr, str nor a dump tells it."""
    settings = load({"IMPRINT_DATABASE_URL": f"postgresql://u:{CANARY}@h/d"})
    assert settings.database_url is not None
    assert settings.database_url.get_secret_value() == f"postgresql://u:{CANARY}@h/d"
    for shown in (repr(settings), str(settings), str(settings.model_dump()), settings.model_dump_json()):
        assert CANARY not in shown


def test_a_home_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a `~` that no shell has replaced nor a later change of folder leads anywhere else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    assert load({"IMPRINT_HOME": "~/imprint"}).home == tmp_path / "me" / "imprint"
    assert load({"IMPRINT_HOME": "here"}).home == tmp_path / "here"
    assert load({"IMPRINT_HOME": "/var/x"}).home == Path("/var/x")


def test_a_user_without_a_home_folder_is_told_to_choose_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number without an entry in the user database, as containers have them, gets a sentence."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000_000)
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_000)
    assert refused({}).code == "settings.no_home"
    assert load({"IMPRINT_HOME": "/srv/imprint"}).home == Path("/srv/imprint")


def test_settings_cannot_be_changed_later() -> None:
    """What the program was started with holds until it ends."""
    with pytest.raises(ValidationError):
        load({}).port = 1
