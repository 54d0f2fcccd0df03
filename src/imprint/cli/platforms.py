"""The command about platforms: what each takes, what it asks for, and what keeps a post from going out twice."""

from collections.abc import Iterator
from typing import Any

import typer

from imprint.cli.output import AsJson, print_json, say
from imprint.platforms.contract import Platform
from imprint.platforms.limits import Limits, TextLimit
from imprint.platforms.registry import PLATFORMS


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(platforms)


def platforms(*, as_json: AsJson = False) -> None:
    """Show where you can publish.

    What each platform takes, what it asks for when an account is added, what can be set for it alone in a post's
    overrides, and what keeps a post from going out twice.
    Limits that differ from account to account are shown as they are by default.
    """
    if as_json:
        print_json([_data(each) for each in PLATFORMS.values()])
        return
    for each in PLATFORMS.values():
        blind = "" if each.can_look else "; it cannot be asked what it has"
        say(f"{each.name}\n  once: {each.once.promise}{blind}")
        say(f"  takes: {'; '.join(_takes(each.limits)) or 'anything'}")
        say(f"  asks for: {', '.join(ask.name for ask in each.asks)}")
        say(f"  can be set: {', '.join(_options(each)) or 'nothing'}\n")
    say("Connect an account with `imprint account add PLATFORM`; docs/platforms has a page for each.")


def _data(platform: Platform[Any]) -> dict[str, Any]:
    limits = platform.limits
    return {
        "name": platform.name,
        "once": {
            "token": platform.once.token,
            "lastsSeconds": platform.once.lasts.total_seconds() if platform.once.lasts else None,
            "canLook": platform.can_look,
            "promise": platform.once.promise,
        },
        "limits": {
            "types": sorted(limits.types),
            "leastFiles": limits.least_files,
            "mostFiles": limits.most_files,
            "bytes": limits.bytes,
            "edge": limits.edge,
            "pixels": limits.pixels,
            "title": _limit(limits.title),
            "description": _limit(limits.description),
            "text": [_limit(each) for each in limits.text],
            "tags": limits.tags,
            "needsTitle": limits.needs_title,
            "needsAlt": limits.needs_alt,
        },
        "asks": [
            {"name": ask.name, "sentence": ask.sentence, "secret": ask.secret, "default": ask.default}
            for ask in platform.asks
        ],
        "options": _options(platform),
    }


def _options(platform: Platform[Any]) -> list[str]:
    return [field.alias or name for name, field in platform.options.model_fields.items()]


def _limit(limit: TextLimit | None) -> dict[str, Any] | None:
    return {"most": limit.most, "unit": str(limit.unit)} if limit else None


def _takes(limits: Limits) -> Iterator[str]:
    """Say the limits in plain words."""
    if limits.needs_title:
        yield "a title" if limits.title is None else f"a title of up to {limits.title.most:,} {limits.title.unit}"
    if limits.text:
        yield "a text of up to " + " and ".join(f"{each.most:,} {each.unit}" for each in limits.text)
    if limits.tags is not None:
        yield f"up to {limits.tags} tags"
    if limits.types:
        kinds = ", ".join(sorted(each.partition("/")[2].upper() for each in limits.types))
        most = "files" if limits.most_files is None else f"up to {limits.most_files} files"
        most = f"{limits.least_files} file" if limits.least_files == limits.most_files else most
        size = [f"{limits.bytes:,} bytes"] if limits.bytes is not None else []
        size += [f"{limits.edge:,} px an edge"] if limits.edge is not None else []
        size += [f"{limits.pixels:,} pixels"] if limits.pixels is not None else []
        yield f"{most} ({kinds}{', each up to ' + ' and '.join(size) if size else ''})"
