"""Log lines: for people on a terminal, as JSON otherwise; secrets never appear in either."""

import logging
import math
import os
import re
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, Literal, TextIO

import structlog

HIDDEN = "**********"

# A password in a text, wherever a library puts one into its message: in a URL, where it ends at the last @ there
# is, since people forget to encode a slash, an @ or a space of theirs; or after its own name. To hide too much
# of a line is better than to hide too little; only a port and a slash are no password.
_PASSWORDS = (
    re.compile(r"(://[^\s/@:]*:)(?!\d{1,5}/)\S+(?=@)"),
    re.compile(r"(://[^\s/@:]*:)(?!\d{1,5}/)[^/\n]+(?=@)"),
    re.compile(r"""(?i)(password['"]?\s*[=:]\s*)(?:'[^']*'|"[^"]*"|[^\s&'"]+)"""),
)
# What a person who forgot to use a secret type would call a secret.
_SECRET_NAMES = re.compile(r"(?i)password|secret|^(.*_)?token$|authorization|cookie|api_?key")


def configure(form: Literal["auto", "human", "json"], level: str) -> None:
    """Send every log line of this process, our own and the libraries', to standard error in one form."""
    human = form == "human" or (form == "auto" and sys.stderr.isatty())
    before: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="%H:%M:%S" if human else "iso", utc=not human),
    ]
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(colors=_colours(), exception_formatter=structlog.dev.plain_traceback)
        if human
        else structlog.processors.JSONRenderer()
    )
    handler = _Handler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=before,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                # Tracebacks become text before secrets are hidden; a renderer that made them itself would come
                # too late, and the console's own would show the local variables of every frame.
                structlog.processors.StackInfoRenderer(),
                structlog.processors.format_exc_info,
                hide_secrets,
                renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("asyncpg.pool").setLevel(logging.CRITICAL)  # whoever uses the pool says it, once
    for client in ("httpx2", "httpcore2"):  # they write every address they ask, and that of a feed may hold a secret
        logging.getLogger(client).setLevel(logging.WARNING)
    structlog.configure(
        processors=[*before, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def _colours() -> bool:
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def hide_secrets(_logger: object, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Replace secret values, however deep, and passwords in URLs, whoever wrote them."""
    return _hidden_items(event)


def hide_in_text(text: str) -> str:
    """Replace the password of every URL in a text, and what is called a password."""
    for password in _PASSWORDS:
        text = password.sub(rf"\1{HIDDEN}", text)
    return text


class _Handler(logging.StreamHandler[TextIO]):
    """Writes log lines; one that cannot be written is reported without what it would have said."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the standard library's name
        """Say where the bad line comes from; the standard library would print its arguments, secrets and all."""
        kind = sys.exc_info()[0]
        sys.stderr.write(
            f"A log line from {record.pathname}:{record.lineno} could not be written"
            f" ({kind.__name__ if kind else 'no reason'}).\n"
        )


def _hidden_items(items: Mapping[Any, object]) -> dict[str, object]:
    return {
        hide_in_text(str(key)): HIDDEN if item and _SECRET_NAMES.search(str(key)) else _hidden(item)
        for key, item in items.items()
    }


def _hidden(value: object) -> object:
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)  # JSON knows no NaN
        case Mapping():
            return _hidden_items(value)
        case list() | tuple() | set() | frozenset():
            return [_hidden(item) for item in value]
        case BaseException():
            return hide_in_text(f"{type(value).__name__}: {value}")
        case _:
            # Secret types show stars for themselves; what shows itself as text may hold a URL somewhere inside.
            return hide_in_text(str(value))
