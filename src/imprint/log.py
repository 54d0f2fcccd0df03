"""Log lines: for people on a terminal, as JSON otherwise; secrets never appear in either."""

import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, Literal

import structlog
from pydantic import SecretBytes, SecretStr

HIDDEN = "**********"

# A password inside a URL, wherever a library puts one into its message.
_URL_PASSWORD = re.compile(r"(?<=://)([^\s/@:]*):([^\s/@]+)@")


def configure(form: Literal["auto", "human", "json"], level: str) -> None:
    """Send every log line of this process, our own and the libraries', to standard error in one form."""
    human = form == "human" or (form == "auto" and sys.stderr.isatty())
    before: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="%H:%M:%S" if human else "iso", utc=not human),
    ]
    last: list[structlog.typing.Processor] = (
        [hide_secrets, structlog.dev.ConsoleRenderer()]
        if human
        else [structlog.processors.format_exc_info, hide_secrets, structlog.processors.JSONRenderer(default=str)]
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=before,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    structlog.configure(
        processors=[*before, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def hide_secrets(_logger: object, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Replace secret values, however deep, and passwords in URLs, whoever wrote them."""
    return {key: _hidden(value) for key, value in event.items()}


def hide_in_text(text: str) -> str:
    """Replace the password of every URL in a text."""
    return _URL_PASSWORD.sub(rf"\1:{HIDDEN}@", text)


def _hidden(value: object) -> object:
    match value:
        case SecretStr() | SecretBytes():
            return HIDDEN
        case str():
            return hide_in_text(value)
        case Mapping():
            return {key: _hidden(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_hidden(item) for item in value]
        case BaseException():
            return hide_in_text(f"{type(value).__name__}: {value}")
        case _:
            return value
