"""The command that goes through everything that is stored: backfill."""

from dataclasses import asdict
from typing import Annotated

import typer

from imprint.cli import session
from imprint.cli.output import AsJson, print_json, say
from imprint.cli.progress import progress
from imprint.problem import Exit
from imprint.settings import Settings
from imprint.work.backfill import Finding, Options, Report, Tell
from imprint.work.backfill import backfill as run_backfill
from imprint.work.content import camel, counts
from imprint.work.stores import open_stores

# More than this many findings are counted but not listed, so that memory stays flat whatever is found.
MOST_LISTED = 10_000


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(backfill)


def backfill(
    *,
    fix_status: Annotated[bool, typer.Option("--fix-status", help="Mend states that disagree with the bytes.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; only tell.")] = False,
    as_json: AsJson = False,
) -> None:
    """Verify all stored bytes, and queue the variants that are missing.

    Reads everything and compares it with its SHA-256. Damaged variants are made again. Stopped at any time, it goes on
    where it was. Exits with 7 when something is left that only a person can put right, or that a dry run has found.
    """
    settings = session.begin()
    findings: list[Finding] = []

    def tell(finding: Finding) -> None:
        if len(findings) < MOST_LISTED:
            findings.append(finding)
        if not as_json:
            of = f" {finding.variant}" if finding.variant else ""
            say(
                f"{finding.content} {finding.name}{of}: {finding.code}" + (f" → {finding.done}" if finding.done else "")
            )

    options = Options(fix_status=fix_status, dry_run=dry_run)
    report, failed = session.run(_backfill(settings, options, tell, quiet=as_json))
    if as_json:
        print_json(
            {
                **camel(asdict(report)),
                "found": report.found,
                "failedContents": failed,
                "findings": [camel(asdict(finding)) for finding in findings],
                "findingsListed": len(findings),
                "dryRun": dry_run,
            }
        )
    else:
        _summary(report, failed, dry_run=dry_run)
    if report.left:
        raise typer.Exit(Exit.ATTENTION)


def _summary(report: Report, failed: int, *, dry_run: bool) -> None:
    if report.resumed:
        say("Went on where an earlier run was stopped.")
    say(f"{report.contents:,} contents, {report.objects:,} objects, {report.bytes:,} bytes read and compared.")
    if not report.found:
        say("Everything is as its state says; there is nothing to do.")
        if failed:
            say(f"Contents that have failed: {failed}; `imprint content list --status failed` names them and why.")
        return
    say(
        f"Found {report.broken_originals} damaged originals, {report.broken_variants} damaged variants, "
        f"{report.missing_variants} missing ones, {report.wrong_states} wrong states."
    )
    if dry_run:
        say("Nothing was changed: this was a dry run.")
        return
    say(f"Queued the variants of {report.queued} contents; mended {report.states_mended} states.")
    if report.broken_originals:
        say("Put damaged originals back from a copy, then run `imprint content retry-failed`.")
    if report.wrong_states > report.states_mended:
        say("Run `imprint backfill --fix-status` to mend the states.")


async def _backfill(settings: Settings, options: Options, tell: Tell, *, quiet: bool) -> tuple[Report, int]:
    async with session.ready_database(settings) as database:
        with progress(in_bytes=False, quiet=quiet) as bar:
            task = bar.add_task("contents", total=None)
            report = await run_backfill(
                database,
                open_stores(settings),
                settings,
                options,
                tell,
                lambda done, every: bar.update(task, completed=done, total=every),
            )
        async with database.connection() as connection:
            return report, (await counts(connection)).get("failed", 0)
