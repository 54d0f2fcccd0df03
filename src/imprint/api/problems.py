"""Problems over HTTP: problem+json with a stable code, a sentence and the field at fault; never a traceback."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import asyncpg
import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError, ResponseValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from imprint.blobs.signing import BadUpload
from imprint.blobs.store import Missing
from imprint.blobs.tally import Broken
from imprint.decisions.schedule import BadTime
from imprint.platforms.failure import Failure, RateLimited, Refused, SignInAgain
from imprint.problem import Busy, Problem, Unavailable, WrongVersion
from imprint.store.db import TROUBLE
from imprint.work.idempotency import Running
from imprint.work.sign_in_limit import TooMany

log = structlog.get_logger()

MEDIA_TYPE = "application/problem+json"
LONGEST = 1000

# What a code means to HTTP, where neither its kind nor its ending says so; any other is a conflict with how things are.
STATUS: Mapping[str, int] = {
    "signed_out": 401,
    "sign_in.refused": 401,
    "scope.lacking": 403,
    "scope.beyond": 403,
    "session.needed": 403,
    "csrf.refused": 403,
    "account.administrators_only": 403,
    "first.bad_code": 403,
    "invitation.bad_code": 403,
    "invitation.beyond": 403,
    "person.wrong_password": 403,
    "upload.refused": 403,
    "post.no_such_file": 404,
    "content.no_variant": 404,
    "notice.no_target": 404,
    "notice.not_sent": 424,
    "notice.too_slow": 424,
    "notice.courier_died": 424,
    "upload.expired": 410,
    "upload.used": 409,
    "upload.missing": 409,
    "request.too_large": 413,
    "request.not_json": 415,
    "request.bad_json": 400,
    "request.bad_host": 400,
    "idempotency.bad_key": 400,
    "content.bad_range": 416,
    "webhook.refused": 424,
    "webhook.gone": 424,
    "events.too_many": 429,
    "events.closing": 503,
    "sandbox.none": 409,  # not away for a moment: there is none
}
# The input itself is at fault: no state of things would make it right.
UNUSABLE = {
    "post.invalid": None,
    "post.wrong_order": "files",
    "post.account_twice": "accounts",
    "account.no_platform": "platform",
    "account.bad_label": "label",
    "account.unknown_answer": "answers",
    "account.no_answer": "answers",
    "account.no_default": "accounts",
    "api_key.bad_label": "label",
    "invitation.bad_label": "label",
    "person.bad_name": "name",
    "person.weak_password": "password",
    "person.reader_of_oneself": "role",
    "scope.unknown": "scopes",
    "scope.none": "scopes",
    "series.bad_title": "title",
    "series.other_source": "preferredSource",
    "source.bad_place": "place",
    "source.bad_name": "name",
    "source.bad_language": "languages",
    "rule.bad_template": None,
    "rule.unknown_field": None,
    "rule.bad_delay": "delaySeconds",
    "rule.no_account": "accounts",
    "rule.needs_file": "accounts",
    "notice.bad_target": "url",
    "notice.bad_label": "label",
    "notice.bad_digest": "digest",
    "dead_letter.which": "ids",
    "content.follows": "status",
    "content.no_state": "status",
    "blob.bad_promise": "sha256",
    "blob.wrong_hash": "sha256",
    "upload.type_not_allowed": "contentType",
    "upload.wrong_type": "contentType",
    "upload.too_large": "fileSize",
    "upload.empty": "fileSize",
    "blob.bad_range": "Range",
    "cursor.bad": "cursor",
    "webhook.bad_address": "url",
    "webhook.bad_events": "events",
    "request.bad_from": "from",
    "request.bad_until": "until",
    "calendar.too_long": "until",
    "resolve.bad_url": "url",
    "batch.bad_interval": "everyMinutes",
    "batch.empty": "posts",
    "batch.post_twice": "posts",
    "batch.too_long": "posts",
    "batch.bad_order": "order",
    "sheet.unreadable": "csv",
    "sheet.empty": "csv",
    "sheet.too_long": "csv",
    "sheet.no_column": "csv",
    "request.invalid": None,
    "idempotency.other_request": "Idempotency-Key",
    "sign_in.not_begun": "returnedTo",
    "sign_in.not_returned": "returnedTo",
    "sign_in.denied": "returnedTo",
    "sign_in.wrong_state": "returnedTo",
    "sign_in.no_code": "returnedTo",
}
# What is at fault goes by another name from route to route, and some have no such field at all.
ADDRESSES = {"wire.address_not_allowed": ("url", "answers"), "wire.malformed": ("url", "answers")}
# What a platform would not take of a post, under one of many codes.
UNFIT = "fit."
_FIELD = re.compile(r"^([A-Za-z0-9_.]{1,100}): ")


class Mistake(BaseModel):
    """One field that is at fault, and why."""

    field: str
    sentence: str


class ProblemShape(BaseModel):
    """What went wrong: a code that stays the same, a sentence for people, the field at fault where there is one."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"status": 404, "code": "post.missing", "title": "There is no such post."},
                {
                    "status": 422,
                    "code": "post.invalid",
                    "title": "title: string should have at most 500 characters.",
                    "field": "title",
                },
            ]
        }
    )

    status: int
    code: str
    title: str
    field: str | None = None
    errors: list[Mistake] | None = None


def answer(
    status: int,
    code: str,
    sentence: str,
    *,
    field: str | None = None,
    errors: Sequence[Mapping[str, str]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Write a problem as JSON."""
    data: dict[str, Any] = {"status": status, "code": code, "title": _sayable(sentence)}
    if field:
        data["field"] = _sayable(field)
    if errors:
        data["errors"] = [{name: _sayable(text) for name, text in each.items()} for each in errors]
    return JSONResponse(data, status_code=status, media_type=MEDIA_TYPE, headers=dict(headers or {}))


def of(problem: Problem, given: Collection[str] = ()) -> JSONResponse:
    """Say in HTTP what went wrong, with one of the fields that were given where that is at fault."""
    status = status_of(problem)
    headers = {"Retry-After": str(problem.seconds)} if isinstance(problem, TooMany | Running) else {}
    if status == 401:  # noqa: PLR2004 - the one that must say how to come in
        headers["WWW-Authenticate"] = 'Bearer realm="Imprint"'
    return answer(status, problem.code, problem.sentence, field=field_of(problem, given), headers=headers)


def status_of(problem: Problem) -> int:  # noqa: PLR0911 - a table
    """Give the status of a problem."""
    if problem.code in STATUS:
        return STATUS[problem.code]
    if problem.code in UNUSABLE or problem.code.startswith(UNFIT):
        return 422
    match problem:
        case TooMany() | RateLimited():
            return 429
        case Unavailable() | WrongVersion():
            return 503
        case Refused() | SignInAgain() | BadTime() | BadUpload() | Broken():
            return 422
        case Failure():
            return 424  # somebody whom we asked did not answer
        case Missing():
            return 404
        case Busy():
            return 409
    return 404 if problem.code.endswith(".missing") else 409


def field_of(problem: Problem, given: Collection[str] = ()) -> str | None:
    """Name the field at fault, where there is one."""
    if problem.field is not None:
        return problem.field
    if problem.code in ADDRESSES:
        return next((each for each in ADDRESSES[problem.code] if each in given), None)
    if problem.code == "post.invalid":
        found = _FIELD.match(problem.sentence)
        return found[1] if found else None
    if isinstance(problem, BadTime):
        return "zone" if problem.code == "schedule.no_zone" else "at"
    return UNUSABLE.get(problem.code)


def register(app: FastAPI) -> None:
    """Let every problem of this application be told so."""
    app.exception_handler(Problem)(_problem)
    app.exception_handler(RequestValidationError)(_invalid)
    app.exception_handler(HTTPException)(_http)
    app.exception_handler(ClientDisconnect)(_left)
    app.exception_handler(asyncpg.DataError)(_unusable)
    app.exception_handler(asyncpg.IntegrityConstraintViolationError)(_conflict)
    app.exception_handler(asyncpg.InsufficientPrivilegeError)(_walled)
    for away in TROUBLE:  # one by one: a handler of Exception would also write each into the log as a bug
        app.exception_handler(away)(_away)
    app.exception_handler(ResponseValidationError)(_bug)
    app.exception_handler(Exception)(_bug)


async def translated(request: Request, error: Exception) -> Response:
    """Give the answer to what a handler raised; what nobody expected is raised again."""
    match error:
        case Problem():
            return await _problem(request, error)
        case RequestValidationError():
            return await _invalid(request, error)
        case HTTPException():
            return await _http(request, error)
    raise error


async def _problem(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, Problem)  # noqa: S101 - registered for nothing else
    return of(problem, await _fields(request) if problem.code in ADDRESSES else ())


async def _fields(request: Request) -> Collection[str]:
    """Give the names of what a request carried; the gate has read its body already."""
    body = await request.body()
    told = json.loads(body) if body else None
    return told if isinstance(told, dict) else ()


async def _invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for nothing else
    found = error.errors()
    if any(each["type"] == "json_invalid" for each in found):
        return answer(400, "request.bad_json", "The body is not JSON.")
    # Without the values: one of them may be a secret that was put into the wrong place.
    errors = [{"field": _where(each["loc"]), "sentence": _what(each)} for each in found[:20]]
    first = errors[0]
    return answer(
        422, "request.invalid", f"{first['field']}: {first['sentence']}.", field=first["field"], errors=errors
    )


async def _http(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for nothing else
    code, sentence = {
        400: ("request.bad_json", "The body is not JSON."),
        404: ("route.missing", "There is nothing at this address."),
        405: ("route.method", "This address does not take that method."),
    }.get(error.status_code, ("request.refused", "This request is not taken."))
    return answer(error.status_code, code, sentence, headers=error.headers)


async def _unusable(_request: Request, _error: Exception) -> Response:
    return answer(422, "request.invalid", "Something in this request cannot be kept.")


async def _conflict(_request: Request, error: Exception) -> Response:
    # Refused by the database and not by a sentence of ours: right, but worth a look.
    log.warning("the database refused a request", constraint=getattr(error, "constraint_name", None))
    return answer(409, "request.conflict", "This does not go together with what is there.")


async def _walled(_request: Request, error: Exception) -> Response:
    # The last check has refused what none before it did: nothing has happened, but one of those is missing.
    log.error("a wall of the database stopped a request", error=str(error))
    return answer(403, "wall.refused", "This is not yours to change.")


async def _away(_request: Request, error: Exception) -> Response:
    if isinstance(error, asyncpg.PostgresError) and not isinstance(error, asyncpg.PostgresConnectionError):
        log.warning("the database refused a request", error=type(error).__name__)
    return answer(503, "database.away", "The database does not answer.", headers={"Retry-After": "2"})


async def _left(_request: Request, _error: Exception) -> Response:
    return Response(status_code=400)  # nobody is there to read it


async def _bug(_request: Request, error: Exception) -> Response:
    log.error("a bug", error=type(error).__name__, exc_info=error)
    return answer(500, "bug", "This is a bug in Imprint; the log says more.")


def _where(location: Sequence[str | int]) -> str:
    parts = [str(part) for part in location]
    return ".".join(parts[1:] if len(parts) > 1 and parts[0] in {"body", "query", "path", "header"} else parts)


def _what(error: Mapping[str, Any]) -> str:
    if error["type"] == "extra_forbidden":
        return "there is no such field"
    message = str(error["msg"]).removeprefix("Value error, ").rstrip(".")
    return message[:1].lower() + message[1:]


def _sayable(text: str) -> str:
    return text[:LONGEST].encode(errors="replace").decode()
