"""A post as the command line shows it, after it was looked at or changed."""

from uuid import UUID
from zoneinfo import ZoneInfo

from imprint.cli.output import print_json, print_table, say, short
from imprint.cli.zone import on_wall, written
from imprint.lifecycles.post import PostStatus
from imprint.lifecycles.publication import PublicationStatus
from imprint.store.db import Database
from imprint.work import post as posts
from imprint.work.explain import STATES
from imprint.work.outlook import WAITS
from imprint.work.person import OPERATOR
from imprint.work.post import Shown


async def look(database: Database, post: UUID) -> Shown:
    """Look at a post."""
    async with database.connection() as connection:
        return await posts.show(connection, OPERATOR, post)


def tell(shown: Shown, sentence: str, zone: ZoneInfo, *, as_json: bool) -> None:
    """Say what was done; as data, give what the post is now."""
    if as_json:
        print_json(written(shown.as_data(), zone))
    else:
        say(sentence)


def print_post(shown: Shown, zone: ZoneInfo) -> None:
    """Print everything about a post."""
    post = shown.post
    say(f"{post.id}  {post.title}")
    say(f"  {'state':<22} {STATES[PostStatus(post.status)]}; since {on_wall(post.status_at, zone)}")
    for name, value in post.fields().items():
        if value not in (None, "", [], {}, False) and name != "title":
            say(f"  {name:<22} {value}")
    if shown.files:
        print_table(
            "\nFiles",
            ["", "name", "bytes", "", "description"],
            [(n, f.name, f.size or "", "" if f.confirmed else "not confirmed", f.alt) for n, f in _counted(shown)],
        )
    if shown.publications:
        places = {file.id: number for number, file in _counted(shown)}
        rows = [
            (
                short(p.id),
                p.label or p.name or p.platform,
                places.get(p.file_id, "") if p.file_id else "",
                p.status,
                on_wall(p.published_at or p.due_at, zone),
                p.attempts or "",
                p.url or p.remote_id or _waits(p) or p.error_code or "",
            )
            for p in shown.publications
        ]
        print_table("\nPublications", ["id", "account", "file", "state", "when", "tries", ""], rows)


def _waits(publication: posts.Planned) -> str:
    """Say what a publication waits for, if there is anything besides its time."""
    if publication.status not in {PublicationStatus.PENDING, PublicationStatus.UNKNOWN}:
        return ""
    return WAITS.get(publication.held_why or "", publication.held_why or "")


def _counted(shown: Shown) -> list[tuple[int, posts.PostFile]]:
    return list(enumerate(shown.files, 1))
