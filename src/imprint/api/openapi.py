"""The OpenAPI document, and a page that shows it without asking anybody else for anything."""

import asyncio
import html
import json
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, JSONResponse

from imprint import __version__
from imprint.api import examples
from imprint.api.gate import OPEN, SELF
from imprint.api.problems import MEDIA_TYPE, ProblemShape

UNSAFE = {"post", "put", "patch", "delete"}
DESCRIPTION = (
    "Everything that the command line does to data. Sign in with `POST /api/session`, and send the `csrfToken` of the "
    "answer as `X-CSRF-Token` with every change; or bring an API key: `Authorization: Bearer imp_…`. A change may "
    "carry an `Idempotency-Key`: sent again with the same key, it is not done again. If a server died meanwhile, "
    "`idempotency.running` says in `Retry-After` when it can be asked again; `idempotency.answer_lost` says that it "
    "was done and only its answer is lost, and it is never done again under this key. The `moves` of a thing are what "
    "you can do with it as it stands, named like the routes; `edit` is PATCH, `delete` and `remove` are DELETE. "
    "Problems are `application/problem+json`."
)
KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Sent again with the same key within a day, the same request is not done again.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200},
}


def register(app: FastAPI) -> None:
    """Add the document and its page."""

    @app.get("/api/openapi.json", include_in_schema=False)
    async def as_data() -> JSONResponse:
        return JSONResponse(await asyncio.to_thread(document, app))  # it takes long, once

    @app.get("/api/docs", include_in_schema=False)
    async def as_page() -> HTMLResponse:
        return HTMLResponse(await asyncio.to_thread(lambda: _page(document(app))))


def document(app: FastAPI) -> dict[str, Any]:
    """Describe every route: who may use it, what it takes, what it answers, also when something is wrong."""
    if app.openapi_schema:
        return app.openapi_schema
    made = get_openapi(title="Imprint", version=__version__, description=DESCRIPTION, routes=app.routes)
    schemas = made.setdefault("components", {}).setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    described = ProblemShape.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(described.pop("$defs", {}))
    schemas["Problem"] = described
    examples.complete(schemas)
    made["components"]["securitySchemes"] = {
        "session": {"type": "apiKey", "in": "cookie", "name": "imprint_session"},
        "apiKey": {"type": "http", "scheme": "bearer"},
    }
    problem = {
        "description": "A problem.",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for method, _, operation in operations(made):
        scope = operation.get("x-scope", OPEN)
        operation["responses"].pop("422", None)
        operation["responses"]["default"] = problem
        if method == "head":  # whatever GET would say, without saying it
            operation["responses"] = {
                status: {"description": each["description"]} for status, each in operation["responses"].items()
            }
        ways: list[dict[str, list[str]]] = [{"session": []}] if scope == SELF else [{"session": []}, {"apiKey": []}]
        operation["security"] = [] if scope == OPEN else ways
        if method in UNSAFE and scope != OPEN:
            operation.setdefault("parameters", []).append(KEY)
        examples.add(operation, schemas)
    app.openapi_schema = made
    return made


def operations(made: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Walk through a document: method, path and operation."""
    for path, methods in made["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def _page(made: dict[str, Any]) -> str:
    parts = [f"<p>{html.escape(DESCRIPTION)}</p><p><a href='/api/openapi.json'>openapi.json</a></p>"]
    tag = ""
    for method, path, operation in operations(made):
        if operation["tags"][0] != tag:
            tag = operation["tags"][0]
            parts.append(f"<h2>{html.escape(tag)}</h2>")
        parts.append(_operation(method, path, operation, made))
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        "<meta name=color-scheme content='light dark'><title>Imprint API</title><style>"
        "body{font:16px/1.5 system-ui,sans-serif;max-width:55rem;margin:3rem auto;padding:0 1rem}"
        "code,pre{font:14px/1.5 ui-monospace,monospace}pre{overflow:auto;padding:.5rem;background:#8882}"
        "summary{cursor:pointer}summary b{display:inline-block;min-width:4.5rem}"
        f"</style><main><h1>Imprint API {html.escape(made['info']['version'])}</h1>{''.join(parts)}</main></html>"
    )


def _operation(method: str, path: str, operation: dict[str, Any], made: dict[str, Any]) -> str:
    lines = [f"<p>{html.escape(operation.get('description', ''))} <small>Needs: {operation['x-scope']}.</small></p>"]
    for each in operation.get("parameters", ()):
        about = html.escape(each.get("description", ""))
        lines.append(f"<p><code>{html.escape(each['name'])}</code> <small>in {each['in']}</small> {about}</p>")
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body:
        shown = html.escape(json.dumps(_resolved(body, made), indent=2, ensure_ascii=False))
        lines.append(f"<p>Body</p><pre>{shown}</pre>")
    for status, answer in operation["responses"].items():
        part = answer.get("content", {}).get("application/json", {})
        if "example" in part:
            shown = html.escape(json.dumps(part["example"], indent=2, ensure_ascii=False))
            lines.append(f"<p>Answer <code>{status}</code></p><pre>{shown}</pre>")
    return (
        f"<details><summary><b>{method.upper()}</b> <code>{html.escape(path)}</code> "
        f"{html.escape(operation.get('summary', ''))}</summary>{''.join(lines)}</details>"
    )


def _resolved(schema: dict[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref", "")
    found: dict[str, Any] = made["components"]["schemas"].get(reference.rpartition("/")[2], schema)
    return found
