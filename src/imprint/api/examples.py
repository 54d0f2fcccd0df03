"""Examples: what a body or an answer looks like, made from its schema where nobody has written one."""

from collections.abc import Mapping
from typing import Any

DEEPEST = 16
# What a field of this name usually holds, so that an example reads like something that happened.
USUAL: Mapping[str, Any] = {
    "account": "gallery",
    "actor": "ada",
    "alt": "A white lighthouse on a rock, the sky red behind it.",
    "at": "2030-05-01T16:00:00Z",
    "body": "It was the last evening of the year.",
    "code": "post.missing",
    "contentType": "image/png",
    "description": "Oil on canvas.",
    "error": "There is no such post.",
    "errorCode": "refused",
    "filename": "lighthouse.png",
    "kind": "artwork",
    "label": "gallery",
    "name": "ada",
    "owner": "operator",
    "personId": "operator",
    "platform": "deviantart",
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "size": 48213,
    "status": "scheduled",
    "text": "lighthouse",
    "title": "A lighthouse at dusk",
    "uploadUrl": "https://imprint.example/api/uploads/bytes/…",
    "url": "https://gallery.example/art/1",
    "version": "1.0.0",
    "why": "its author planned it",
    "zone": "Europe/Berlin",
}
UUID = "8f1d0c52-5d0e-4e62-8a8e-0f7a3f0c9b23"
FORMATS: Mapping[str, Any] = {"uuid": UUID, "date-time": "2030-05-01T16:00:00Z", "uri": "https://gallery.example/art/1"}
PLAIN: Mapping[str, Any] = {"integer": 1, "number": 1.0, "boolean": False, "null": None}


def add(operation: dict[str, Any], schemas: Mapping[str, Any]) -> None:
    """Give an operation an example of its body, of its parameters and of each good answer."""
    for content in [operation.get("requestBody", {}), *_good(operation)]:
        told = content.get("content", {}).get("application/json")
        if told and "schema" in told and "example" not in told and "examples" not in told:
            told["example"] = example(told["schema"], schemas)
    for parameter in operation.get("parameters", ()):
        schema = parameter.get("schema", {})
        if "example" not in parameter and "examples" not in parameter and parameter.get("required"):
            parameter["example"] = example(schema, schemas, parameter["name"])


def complete(schemas: Mapping[str, Any]) -> None:
    """Give the examples that stand in the shapes themselves their nulls."""
    for schema in schemas.values():
        if schema.get("examples"):
            schema["examples"] = [whole(each, schema, schemas) for each in schema["examples"]]


def example(schema: Mapping[str, Any], schemas: Mapping[str, Any], name: str = "", depth: int = 0) -> Any:  # noqa: PLR0911 - a table
    """Make an example of a schema: what was written for it, or what a field of this name usually holds."""
    if schema.get("examples"):
        return whole(schema["examples"][0], schema, schemas)
    if (meant := _meant(schema, schemas)) is not None:
        return example(meant, schemas, name, depth + 1)
    if "const" in schema or "enum" in schema:
        return schema.get("const") or schema["enum"][0]
    match schema.get("type"):
        case "object":
            return _object(schema, schemas, depth)
        case "array":
            return [example(schema["items"], schemas, name.removesuffix("s"), depth + 1)] if depth < DEEPEST else []
        case "string":
            return _text(schema, name)
        case "integer" if isinstance(USUAL.get(name), int):
            return USUAL[name]
        case kind:
            return PLAIN.get(kind or "null")


def whole(written: Any, schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
    """Give a written example every null that belongs to it; whoever puts the document together leaves them out."""
    if (meant := _meant(schema, schemas)) is not None:
        return whole(written, meant, schemas)
    if isinstance(written, list) and "items" in schema:
        return [whole(each, schema["items"], schemas) for each in written]
    if not isinstance(written, dict) or "properties" not in schema:
        return written
    parts = schema["properties"]
    given = {name: whole(value, parts[name], schemas) if name in parts else value for name, value in written.items()}
    return given | {name: None for name in schema.get("required", ()) if name not in written}


def _meant(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Follow a schema that only points to another one, or to the first of several."""
    if "$ref" in schema:
        found: Mapping[str, Any] = schemas[schema["$ref"].rpartition("/")[2]]
        return found
    return next((schema[several][0] for several in ("anyOf", "oneOf", "allOf") if several in schema), None)


def _good(operation: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [answer for status, answer in operation["responses"].items() if status.startswith("2")]


def _object(schema: Mapping[str, Any], schemas: Mapping[str, Any], depth: int) -> dict[str, Any]:
    if depth >= DEEPEST:
        return {}
    if "properties" in schema:
        return {name: example(part, schemas, name, depth + 1) for name, part in schema["properties"].items()}
    more = schema.get("additionalProperties")
    return {"draft": example(more, schemas, "", depth + 1)} if isinstance(more, dict) and more else {}


def _text(schema: Mapping[str, Any], name: str) -> str:
    if schema.get("format") in FORMATS:
        return str(FORMATS[schema["format"]])
    usual = USUAL.get(name)
    return usual if isinstance(usual, str) else name or "text"
