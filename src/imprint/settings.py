"""The settings: each a name, a default and a sentence; an unknown one stops the start."""

import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal, NamedTuple
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from imprint.problem import BadSettings

PREFIX = "IMPRINT_"


def default_home() -> Path:
    """Say where a person's Imprint lives: root's in /var/lib, since a service user must be able to enter it."""
    try:
        return Path("/var/lib/imprint") if os.geteuid() == 0 else Path.home() / ".imprint"
    except RuntimeError:
        raise BadSettings(
            "settings.no_home", "This user has no home folder; set IMPRINT_HOME to a folder that Imprint can use."
        ) from None


def _absolute(path: Path) -> Path:
    # Children of this process may work in another folder: what is relative is settled once, here.
    if not str(path).isprintable():
        raise ValueError("a path with control characters cannot be used")
    try:
        return path.expanduser().absolute()
    except RuntimeError:
        raise ValueError("there is no such user's home folder") from None


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("there is no such time zone") from None
    return name


def _hosts(text: str) -> str:
    # Kept as it was written, since the page about settings shows a text; who needs the names splits them.
    for name in text.replace(",", " ").split():
        if "/" in name or "@" in name or "*" in name:
            raise ValueError("write names or addresses, with or without a port, such as ntfy.lan or 10.0.0.5:8080")
    return text


def _origin(url: str | None) -> str | None:
    if url is None:
        return None
    parts = urlsplit(url)
    if (
        parts.scheme not in {"http", "https"}
        or not parts.hostname
        or parts.path.strip("/")
        or parts.query
        or "@" in url
    ):
        raise ValueError("it should read https://imprint.example")
    return f"{parts.scheme}://{parts.netloc.lower()}"


class Settings(BaseSettings):
    """What can be set with IMPRINT_… variables of the environment; `load` is what reads them."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    home: Annotated[
        Path,
        AfterValidator(_absolute),
        Field(
            default_factory=default_home,
            description="The folder that holds the embedded database, its backups and everything else Imprint keeps.",
            json_schema_extra={"shown": "~/.imprint, for root /var/lib/imprint"},
        ),
    ]
    database_url: Annotated[
        SecretStr | None,
        Field(description="The URL of a PostgreSQL server (14 or newer) to use instead of the embedded one."),
    ] = None
    host: Annotated[str, Field(description="The address the HTTP server listens on.")] = "127.0.0.1"
    port: Annotated[
        int, Field(ge=0, le=65535, description="The port the HTTP server listens on; 0 takes any free one.")
    ] = 7600
    public_url: Annotated[
        str | None,
        AfterValidator(_origin),
        Field(
            description="The address at which people reach Imprint, such as https://imprint.example, behind a proxy.",
            json_schema_extra={"shown": "the address they used"},
        ),
    ] = None
    sandbox_port: Annotated[
        int,
        Field(
            ge=0,
            le=65535,
            description="The port of the sandbox that a page can start, on this machine only; 0 takes any free one.",
        ),
    ] = 7700
    workers: Annotated[int, Field(ge=0, le=64, description="How many worker processes `imprint up` starts.")] = 1
    concurrency: Annotated[int, Field(ge=2, le=1000, description="How many jobs one worker runs at the same time.")] = (
        20
    )
    blob_store: Annotated[
        Literal["local", "s3"], Field(description="Where files are kept: on this machine's disk or in an S3 bucket.")
    ] = "local"
    blob_folder: Annotated[
        Path | None,
        Field(
            description="The folder for files when they are kept on this machine's disk.",
            json_schema_extra={"shown": "blobs in the home"},
        ),
    ] = None
    s3_bucket: Annotated[str | None, Field(description="The bucket that holds the files.")] = None
    s3_endpoint: Annotated[
        str | None,
        Field(
            description="The address of an S3-compatible server, such as R2 or MinIO.",
            json_schema_extra={"shown": "Amazon's"},
        ),
    ] = None
    s3_region: Annotated[str, Field(description="The bucket's region; R2 wants auto.")] = "us-east-1"
    s3_prefix: Annotated[
        str,
        Field(description="The part of the bucket that belongs to Imprint.", json_schema_extra={"shown": "all of it"}),
    ] = ""
    s3_access_key_id: Annotated[
        str | None,
        Field(description="The name of the bucket's key; without it the machine's own credentials are used."),
    ] = None
    s3_secret_access_key: Annotated[SecretStr | None, Field(description="The secret of the bucket's key.")] = None
    s3_path_style: Annotated[
        bool, Field(description="Whether the bucket is named in the path and not in the host.")
    ] = True
    s3_allow_http: Annotated[bool, Field(description="Whether the bucket may be spoken to without TLS.")] = False
    upload_keys: Annotated[
        SecretStr | None,
        Field(
            description="The keys that sign upload addresses, newest first; needed when machines share a database.",
            json_schema_extra={"shown": "kept in the home"},
        ),
    ] = None
    upload_url_minutes: Annotated[
        int, Field(ge=1, le=10080, description="How many minutes an upload address can be used.")
    ] = 60
    upload_leftover_hours: Annotated[
        int, Field(ge=1, description="After how many hours what an unfinished upload has left behind is removed.")
    ] = 24
    upload_largest_mb: Annotated[int, Field(ge=1, description="How many megabytes one uploaded file may have.")] = 500
    derivations_at_once: Annotated[
        int, Field(ge=1, le=256, description="How many works have their variants made at once, over all workers.")
    ] = 4
    image_megapixels: Annotated[
        int, Field(ge=1, description="How many million pixels an image may have for variants to be made of it.")
    ] = 100
    image_memory_mb: Annotated[
        int, Field(ge=128, description="How many megabytes of memory the making of one image's variants may use.")
    ] = 1024
    image_seconds: Annotated[
        int, Field(ge=1, description="How many seconds of computing the making of one image's variants may take.")
    ] = 60
    keep_deleted_days: Annotated[
        int, Field(ge=0, description="How many days the bytes of deleted content are kept before they are gone.")
    ] = 30
    published_originals: Annotated[
        Literal["keep", "remove"],
        Field(
            description="What becomes of a file once every post with it is published; the variants stay in any case."
        ),
    ] = "keep"
    zone: Annotated[
        str,
        AfterValidator(_zone),
        Field(description="The time zone in which times are read and shown when none is named, such as Europe/Berlin."),
    ] = "UTC"
    schedule_lead_minutes: Annotated[
        int, Field(ge=0, description="How many minutes ahead a post must be scheduled at least.")
    ] = 60
    schedule_horizon_days: Annotated[
        int, Field(ge=1, le=3650, description="How many days ahead a post can be scheduled at most.")
    ] = 365
    schedule_jitter_seconds: Annotated[
        int, Field(ge=0, le=86400, description="How many seconds after its time a scheduled post goes out at most.")
    ] = 300
    late_hours: Annotated[
        int, Field(ge=0, le=8784, description="How many hours late a post is still published when its time was missed.")
    ] = 24
    credential_key_file: Annotated[
        Path | None,
        Field(
            description="The file with the keys that seal sign-ins; machines that share a database share this file.",
            json_schema_extra={"shown": "credential-keys in the home"},
        ),
    ] = None
    allowed_hosts: Annotated[
        str,
        AfterValidator(_hosts),
        Field(
            description="Private hosts that sources and notices may use all the same: host or host:port, with commas.",
            json_schema_extra={"shown": "none"},
        ),
    ] = ""
    notice_window_seconds: Annotated[
        int, Field(ge=0, le=86400, description="How long new chapters of a series are gathered into one message.")
    ] = 60
    notice_daily_hour: Annotated[
        int, Field(ge=0, le=23, description="At which hour of the day, in the time zone, a daily digest goes out.")
    ] = 8
    polls_at_once: Annotated[
        int, Field(ge=1, le=100, description="How many sources are asked at once, over all workers.")
    ] = 5
    poll_hot_minutes: Annotated[
        int, Field(ge=1, le=43200, description="How many minutes apart a source that brings news is asked.")
    ] = 30
    poll_warm_minutes: Annotated[
        int, Field(ge=1, le=43200, description="How many minutes apart a source without news for weeks is asked.")
    ] = 360
    poll_cold_minutes: Annotated[
        int, Field(ge=1, le=43200, description="How many minutes apart a source without news for months is asked.")
    ] = 1440
    fetch_agent: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=200,
            pattern=r"^[\x20-\x7e]+$",
            description="What Imprint calls itself when it asks sources.",
            json_schema_extra={"shown": "Imprint and its version"},
        ),
    ] = None
    fetch_largest_mb: Annotated[
        int, Field(ge=1, le=1024, description="How many megabytes a source's answer may have, unpacked.")
    ] = 16
    fetch_seconds: Annotated[
        int, Field(ge=1, le=600, description="How many seconds one answer of a source may take.")
    ] = 60
    fetch_gap_ms: Annotated[
        int, Field(ge=1, le=600_000, description="How many milliseconds lie between two requests to the same host.")
    ] = 1000
    mangadex_base: Annotated[str, Field(description="Where MangaDex's API is, or what stands in for it.")] = (
        "https://api.mangadex.org"
    )
    mangapark_base: Annotated[str, Field(description="Where MangaPark is, or what stands in for it.")] = (
        "https://mangapark.net"
    )
    log_format: Annotated[
        Literal["auto", "human", "json"],
        Field(description="How log lines look; auto is human on a terminal and JSON otherwise."),
    ] = "auto"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Field(description="The least severe log line that is written.")
    ] = "info"
    lease_seconds: Annotated[
        int,
        Field(ge=5, le=3600, description="How long a worker may hold a row without renewing its lease."),
    ] = 60
    crashes_before_quarantine: Annotated[
        int,
        Field(ge=1, le=100, description="How many lost leases in a row set a row aside for a person to look at."),
    ] = 3
    shutdown_seconds: Annotated[
        int, Field(ge=0, le=3600, description="How long running work may go on after a stop was asked for.")
    ] = 30
    database_start_seconds: Annotated[
        int,
        Field(ge=1, le=3600, description="How long the embedded database may take to start; crash recovery included."),
    ] = 120
    keep_finished_hours: Annotated[
        int, Field(ge=1, le=87600, description="How long a finished job stays in the job log.")
    ] = 48
    keep_finished_jobs: Annotated[
        int, Field(ge=0, le=10_000_000, description="How many finished jobs stay in the job log.")
    ] = 5000
    keep_failed_days: Annotated[int, Field(ge=1, le=3650, description="How long a dead letter is kept.")] = 7
    keep_failed_jobs: Annotated[int, Field(ge=0, le=10_000_000, description="How many dead letters are kept.")] = 1000
    keep_backups: Annotated[
        int, Field(ge=1, description="How many backups made before a migration or a restore are kept of each.")
    ] = 5

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take only what is given: the class by itself would also read the process's environment, past `load`."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)


def variable(name: str) -> str:
    """Name the environment variable of a setting."""
    return PREFIX + name.upper()


def load(environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings; raise BadSettings naming every variable that is unknown or has a bad value."""
    environment = os.environ if environment is None else environment
    known = {variable(name): name for name in Settings.model_fields}
    given = {name: value for name, value in environment.items() if name.upper().startswith(PREFIX)}
    unknown = [_unknown(name, known) for name in given if name not in known]
    try:
        settings = Settings.model_validate(
            {known[name]: value for name, value in given.items() if value and name in known}
        )
    except ValidationError as error:
        # Without the values: one of them may be a secret that was put into the wrong variable.
        invalid = [_invalid(each) for each in error.errors(include_input=False, include_context=False)]
        raise BadSettings("settings.invalid", " ".join([*unknown, *invalid])) from None
    if unknown:
        raise BadSettings("settings.unknown", " ".join(unknown))
    return settings


def _unknown(name: str, known: Mapping[str, str]) -> str:
    # Compared without the prefix, which makes every name look a little like every other.
    near = get_close_matches(name[len(PREFIX) :].lower(), known.values(), n=1)
    return f"{name} is not a setting" + (f"; did you mean {variable(near[0])}?" if near else "; see docs/settings.md.")


def _invalid(error: Mapping[str, object]) -> str:
    location = error["loc"]
    name = str(location[0]) if isinstance(location, tuple) and location else ""
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{variable(name)} has a bad value: {message[:1].lower()}{message[1:]}."


class Described(NamedTuple):
    """A setting as people see it."""

    variable: str
    default: str
    sentence: str


def described(settings: type[Settings]) -> list[Described]:
    """List every setting with its default and its sentence."""
    return [
        Described(variable(name), _default(field), field.description or "")
        for name, field in settings.model_fields.items()
    ]


def _default(field: FieldInfo) -> str:
    shown = field.json_schema_extra
    if isinstance(shown, dict) and "shown" in shown:
        return str(shown["shown"])
    return "none" if field.default is None else str(field.default)
