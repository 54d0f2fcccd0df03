"""`imprint prove defects`: mistakes that earlier programs made are put back one at a time, and a test must notice.

Each is a small change of a copy of the source, with the tests that are there to catch it. The tests pass without the
change, fail with it, and it is written down which of them did.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from time import monotonic
from typing import Any

import imprint
from imprint.problem import Problem
from imprint.proof.ground import scratch
from imprint.settings import PREFIX

LIST = "defects.toml"
COPIED = ("src", "tests", "docs")
SECONDS = 300.0
PASSED, FAILED = 0, 1


@dataclass(frozen=True)
class Patch:
    """A text of a file, and what stands there instead."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Defect:
    """A mistake: which seed made it, what it was, how it is put back, and who should notice."""

    name: str
    seed: str
    says: str
    caught_by: tuple[str, ...]
    patches: tuple[Patch, ...]


def defects() -> tuple[Defect, ...]:
    """Read the list."""
    told = tomllib.loads(resources.files("imprint.proof").joinpath(LIST).read_text(encoding="utf-8"))
    return tuple(
        Defect(
            each["name"],
            each["seed"],
            each["says"],
            tuple(each["caught_by"]),
            tuple(Patch(**patch) for patch in each["patch"]),
        )
        for each in told["defect"]
    )


def prove_defects(only: Sequence[str]) -> dict[str, Any]:
    """Put each back, or only those that are named, and see who notices."""
    known = defects()
    if unknown := set(only) - {each.name for each in known}:
        names = ", ".join(each.name for each in known)
        raise Problem("proof.no_defect", f"There is no defect {min(unknown)!r}; there are {names}.")
    wanted = [each for each in known if not only or each.name in only]
    with scratch() as home:
        copy = Copy.of(home)
        sound = copy.tests([test for each in wanted for test in each.caught_by])
        if sound.code != PASSED:
            raise Problem("proof.not_sound", f"Without any defect these fail: {', '.join(sound.failed) or sound.said}.")
        table = [tried(copy, each) for each in wanted]
    missed = [row["name"] for row in table if not row["caught_by"]]
    return {
        "defects": len(table),
        "caught": len(table) - len(missed),
        "table": table,
        "wrong": [f"nobody notices {name}" for name in missed],
    }


def tried(copy: "Copy", defect: Defect) -> dict[str, Any]:
    """Put a defect in, run the tests that are there for it, and say who noticed."""
    began = monotonic()
    with copy.with_defect(defect):
        ran = copy.tests(defect.caught_by)
    return {
        "name": defect.name,
        "seed": defect.seed,
        "says": defect.says,
        # Only a test that ran and failed has noticed; one that could not even be loaded has not.
        "caught_by": list(ran.failed) if ran.code == FAILED else [],
        "seconds": round(monotonic() - began, 1),
    }


@dataclass(frozen=True)
class Ran:
    """How tests ended, which of them failed, and the last thing that was said."""

    code: int
    failed: tuple[str, ...]
    said: str


@dataclass(frozen=True)
class Copy:
    """A copy of the source and its tests."""

    root: Path

    @classmethod
    def of(cls, home: Path) -> "Copy":
        """Copy the checkout that this program runs from."""
        checkout = Path(imprint.__file__).parents[2]
        if not (checkout / "tests").is_dir() or not (checkout / "pyproject.toml").is_file():
            raise Problem(
                "proof.no_checkout", "Defects are put back into a checkout; this Imprint was installed without."
            )
        for name in COPIED:
            shutil.copytree(checkout / name, home / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "README.md", "CHANGELOG.md"):
            shutil.copy(checkout / name, home / name)
        return cls(home)

    @contextmanager
    def with_defect(self, defect: Defect) -> Iterator[None]:
        """Put a defect in, and take it out again."""
        before = {patch.file: (self.root / patch.file).read_text(encoding="utf-8") for patch in defect.patches}
        try:
            for patch in defect.patches:
                path = self.root / patch.file
                text = path.read_text(encoding="utf-8")
                if text.count(patch.old) != 1:
                    raise Problem("proof.stale", f"{defect.name}: {patch.file} does not have {patch.old!r} once.")
                path.write_text(text.replace(patch.old, patch.new), encoding="utf-8")
            yield
        finally:
            for file, text in before.items():
                (self.root / file).write_text(text, encoding="utf-8")

    def tests(self, names: Sequence[str]) -> Ran:
        """Run the tests of these names, wherever they are."""
        found = [self.place(name) for name in dict.fromkeys(names)]
        command = [sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=no", "-rfE", *found]
        own = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        paths = os.pathsep.join(str(self.root / each) for each in ("src", ""))
        try:
            ran = subprocess.run(  # noqa: S603 - our own tests
                command,
                cwd=self.root,
                env={**own, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True,
                text=True,
                timeout=SECONDS + 30 * len(found),
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Ran(-1, (), "it does not end")
        failed = re.findall(r"^FAILED (?:\S+::)?(\w+)", ran.stdout, re.MULTILINE)
        return Ran(ran.returncode, tuple(dict.fromkeys(failed)), (ran.stdout + ran.stderr).strip()[-300:])

    def place(self, name: str) -> str:
        """Find a test by its name."""
        for path in sorted((self.root / "tests").rglob("test_*.py")):
            if re.search(rf"^(async )?def {name}\(", path.read_text(encoding="utf-8"), re.MULTILINE):
                return f"{path.relative_to(self.root)}::{name}"
        raise Problem("proof.no_test", f"There is no test {name}.")
