"""The documentation is true: pages are fresh, links lead somewhere, and what is named exists."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from docs import generate

from imprint.lifecycles.registry import LIFECYCLES
from imprint.problem import Exit
from imprint.settings import Settings, described
from imprint.store.query import texts

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
DECISIONS = sorted((DOCS / "decisions").glob("*.md"))

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def slug(heading: str) -> str:
    """Make the anchor that a heading gets where Markdown is shown."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def code(text: str) -> str:
    """Take what is set as code, in fences and in lines, and leave the prose."""
    fences = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    return "\n".join([*fences, *spans])


def cells(page: Path, *, columns: int) -> Iterator[list[str]]:
    """Read the rows of every table of that width, without emphasis and heads."""
    for line in page.read_text(encoding="utf-8").splitlines():
        row = [cell.strip().strip("*`") for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(row) == columns:
            yield row


def test_generated_pages_are_fresh() -> None:
    """Find every generated page as the code would write it now."""
    assert generate.stale() == [], "run `make docs`"


def test_a_stale_page_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Name a page that was changed and one that is missing, and write exactly those anew."""
    assert generate.main([], tmp_path) == 0
    assert generate.main(["--check"], tmp_path) == 0
    (tmp_path / "cli.md").write_text("something else", encoding="utf-8")
    (tmp_path / "settings.md").unlink()
    capsys.readouterr()
    assert generate.main(["--check"], tmp_path) == generate.STALE
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["docs/settings.md", "docs/cli.md"]
    assert generate.main([], tmp_path) == 0
    assert capsys.readouterr().out.splitlines() == ["wrote docs/settings.md", "wrote docs/cli.md"]
    assert generate.stale(tmp_path) == []


def test_generated_pages_are_the_same_twice() -> None:
    """Write the same pages from the same code, so that a stale page always means a change."""
    assert generate.pages() == generate.pages()


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    """Find a file, and in it the heading, behind every relative link."""
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_file(), f"{page.name} links to {link}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in map(slug, headings), f"{page.name} links to {link}"


@every_page
def test_commands_exist(page: Path) -> None:
    """Find every `imprint …` with its options, and every `make …`, that a page names."""
    shown = code(page.read_text(encoding="utf-8"))
    known = generate.commands()
    for name, rest in re.findall(r"(?<![\w/-])(?:\.venv/bin/)?imprint ([a-z][a-z-]*)([^\n#]*)", shown):
        assert name in known, f"{page.name} names imprint {name}"
        for option in re.findall(r"(?<= )--[a-z-]+", rest):
            assert option in known[name], f"{page.name} names imprint {name} {option}"
    targets = set(re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for target in re.findall(r"(?<![\w-])make ([a-z]+)", shown):
        assert target in targets, f"{page.name} names make {target}"


def test_readme_opens_with_the_two_commands() -> None:
    """Name `make run` and `make test` before any other command; everything in the page that is run was found there."""
    shown = code((ROOT / "README.md").read_text(encoding="utf-8"))
    assert re.findall(r"(?<![\w-])make ([a-z]+)", shown)[:2] == ["run", "test"]
    assert set(re.findall(r"(?<=\.venv/bin/imprint )[a-z]+", shown)) >= {"status", "doctor", "backup", "restore"}


@every_page
def test_settings_that_are_named_exist(page: Path) -> None:
    """Find every IMPRINT_… variable that a page names among the settings."""
    named = set(re.findall(r"IMPRINT_[A-Z_]+[A-Z]", page.read_text(encoding="utf-8")))
    assert named <= {setting.variable for setting in described(Settings)}


def test_every_setting_is_documented() -> None:
    """Find every setting, with its default and its sentence, in the page about settings."""
    rows = {row[0]: row[1:] for row in cells(DOCS / "settings.md", columns=3)}
    for setting in described(Settings):
        default, sentence = rows[setting.variable]
        assert (default.replace("`", ""), sentence) == (setting.default.replace("`", ""), setting.sentence)
        assert setting.sentence.endswith((".", "…")), f"{setting.variable} has no sentence"


def test_every_exit_code_is_documented() -> None:
    """Find every exit code and what it means in the page about the command line."""
    rows = dict(cells(DOCS / "cli.md", columns=2))
    for code_ in Exit:
        assert rows[str(code_.value)], f"{code_.name} has no meaning"


def test_every_query_is_documented() -> None:
    """Find every query and its sentence in the page about queries, in the file it is named after."""
    rows = dict(cells(DOCS / "queries.md", columns=2))
    for name, text in texts().items():
        assert rows[name] == text.sentence.replace("<", "&lt;")
    for file, found in generate.queries().items():
        assert all(text.name.startswith(file.removesuffix(".sql") + "_") for text in found)


def test_the_example_of_the_api_asks_for_routes_that_exist() -> None:
    """Find every request of the example, by method and path, in the page about the API."""
    text = (DOCS / "first-post.sh").read_text(encoding="utf-8")
    asked = re.findall(r'call (?:-X (\w+) )?[^"\n]*"\$at(/api/[^"]+)"', text)
    wanted = {(method or "GET", re.sub(r"\$(\w+)", r"{\1}", path)) for method, path in asked}
    assert len(wanted) == 9
    assert wanted <= {(method, path) for method, path, *_ in generate.routes()}


def test_the_glossary_has_every_word_of_the_lifecycles() -> None:
    """Find every thing and every state in the glossary, the states with the things they are of."""
    words = {row[0] for row in cells(DOCS / "glossary.md", columns=2)}
    assert {lifecycle.table for lifecycle in LIFECYCLES} <= words
    states = {row[0]: row[1].split(", ") for row in cells(DOCS / "glossary.md", columns=3) if row[0] != "State"}
    declared = {str(state) for lifecycle in LIFECYCLES for state in lifecycle.states}
    assert states == {
        state: [lifecycle.table for lifecycle in LIFECYCLES if state in {*lifecycle.states}] for state in declared
    }


def test_the_architecture_names_every_room() -> None:
    """Find every room that the import rules know in the architecture, and its diagram in their order."""
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    layers: list[str] = rules[0]["layers"]
    for room in (room for layer in layers for room in layer.split(" | ")):
        assert f"`{room}/`" in page or f"`{room}.py`" in page, f"the architecture does not name {room}"
    drawn = re.findall(r'\["([^"]+)"\]', page[page.index("flowchart") :])
    assert drawn == layers


@pytest.mark.parametrize("record", DECISIONS, ids=lambda record: record.stem)
def test_every_decision_is_whole(record: Path) -> None:
    """Find context, decision, why and consequences in a record, its number in its title, and a link to it."""
    text = record.read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert [heading.split()[0] for heading in headings] == ["Context", "Decision", "Why", "Consequences"]
    assert text.startswith(f"# {int(record.name[:4])}. ")
    assert len(text.splitlines()) <= 50, "a record is half a page"
    assert f"(decisions/{record.name})" in (DOCS / "architecture.md").read_text(encoding="utf-8")


def test_decisions_are_numbered_without_a_gap() -> None:
    """Count the records from one."""
    assert [int(record.name[:4]) for record in DECISIONS] == list(range(1, len(DECISIONS) + 1))
    assert DECISIONS


@pytest.mark.parametrize("page", [*PAGES, *sorted((ROOT / "requirements").iterdir())], ids=lambda page: page.name)
def test_no_page_names_a_registry(page: Path) -> None:
    """Find no host from which packages are downloaded: whoever installs uses the index of their own machine."""
    hosts = re.compile(r"pypi\.|pythonhosted|npmjs|conda\.|anaconda\.|index-url|ghcr\.|docker\.io")
    assert not hosts.search(page.read_text(encoding="utf-8"))


@every_page
def test_no_page_names_a_machine(page: Path) -> None:
    """Find no absolute path of the machine a page was written on."""
    assert not re.search(r"(?<![\w.~/-])/(work|tmp|root)\b", page.read_text(encoding="utf-8"))
