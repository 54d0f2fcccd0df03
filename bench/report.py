"""`python -m bench.report`: writes bench/REPORT.md and its plots from the JSON that the benches left behind."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Told = Mapping[str, Any]

HERE = Path(__file__).parent
# What describes a run and is no figure of anybody.
ABOUT = ("ratio", "ratio_cpu", "machine", "asked", "asked_for", "sandbox")
OURS = "imprint"
MISSING = "not installed"
# The benches whose cost against size is drawn: a title, the unit, and where the sizes are in the JSON.
GROWTHS = {
    "clock and claim": ("growth", "microseconds a statement", ("imprint", "growth")),
    "ingest": ("ingest", "microseconds a chapter", ("imprint", "us_per_chapter")),
    "calendar": ("api", "milliseconds a month", ("imprint", "calendar_growth")),
    "backfill": ("backfill", "microseconds a content", ("imprint",)),
}
# In a growth of several figures, those that are drawn.
DRAWN = ("claim_us", "clock_due_us", "clock_plan_us", "p50_ms", "p99_ms", "us_per_content")
OPENING = (
    "Made by `make bench` from `results/*.json`. Peers are measured in the same run, on the same machine; a ratio "
    "above 1 means that Imprint is better, whichever way the figure counts. A peer that was not there is named."
)
INK, PALE = "#1f4e79", "#b8c4d0"


def read(folder: Path) -> dict[str, Told]:
    """Read what the benches left behind, by their names."""
    return {file.stem: json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))}


def flat(told: Told, before: str = "") -> Iterator[tuple[str, str]]:
    """Give every figure with its name, those within others too."""
    for name, value in told.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{before}{name} ")
        elif isinstance(value, list):
            yield f"{before}{name}", " to ".join(str(each) for each in value)
        elif value is not None:
            yield f"{before}{name}", str(value)


def lines(told: Told) -> list[str]:
    """Say in a line each what is ours, what is a peer's, and how they compare."""
    peers = {name: value for name, value in told.items() if name not in ABOUT}
    said = [
        f"{name}: {value}" if isinstance(value, str) else f"{name}: {', '.join(' '.join(e) for e in flat(value))}"
        for name, value in peers.items()
    ]
    return said + [
        f"{name} (above 1: we are better): {', '.join(' '.join(each) for each in flat(told[name]))}"
        for name in ("ratio", "ratio_cpu")
        if told.get(name)
    ]


def write(folder: Path, into: Path | None = None) -> Path:
    """Write the report beside the results, or for the full ones where people look for it."""
    told = read(folder)
    target = into or (HERE if folder.name == "results" else folder)
    drawn = plots(told, target / "plots")
    path = target / "REPORT.md"
    path.write_text(text(told, drawn))
    return path


def text(told: Mapping[str, Told], drawn: Sequence[str]) -> str:
    """Give the report."""
    parts = [
        "# Benches",
        OPENING,
    ]
    for name, each in told.items():
        about = each["machine"]
        parts += [
            f"## {name}",
            f"`python -m bench.{name} {each.get('asked_for', '')}`".replace(" `", "`")
            + f", {about['date']}, load {about['load_1m']}",
            _table(_rows(each)),
        ]
        parts += [f"{peer}: {value}" for peer, value in each.items() if isinstance(value, str) and MISSING in value]
    if drawn:
        parts += ["## Plots", *(f"![{each}](plots/{each}.png)" for each in drawn)]
    if told:
        newest = max((each["machine"] for each in told.values()), key=lambda about: str(about["date"]))
        machine = [(name, str(value)) for name, value in newest.items() if name != "load_1m" and value is not None]
        parts += ["## Machine", _table([("", ""), *machine])]
    return "\n\n".join(parts) + "\n"


def _rows(told: Told) -> list[tuple[str, ...]]:
    """Put ours, the peers' and the ratios beside each other; what only one has stands alone."""
    peers = [name for name, value in told.items() if name not in (*ABOUT, OURS) and isinstance(value, Mapping)]
    figures = {name: dict(flat(told[name])) for name in (OURS, *peers)}
    ratios = {peer: _ratios(told.get("ratio"), peer) for peer in peers}
    names = list(dict.fromkeys(name for each in figures.values() for name in each))
    head = ("", OURS, *(title for peer in peers for title in (peer, "ratio")))
    rows = []
    for name in names:
        cells = [cell for peer in peers for cell in (figures[peer].get(name, ""), ratios[peer].get(name, ""))]
        rows.append((name.replace("_", " "), figures[OURS].get(name, ""), *cells))
    whole = [cell for peer in peers for cell in ("", ratios[peer].get("", ""))]
    return [head, *rows, *([("all", "", *whole)] if any(whole) else [])]


def _ratios(told: Any, peer: str) -> dict[str, str]:
    if not isinstance(told, Mapping) or peer not in told:
        return {}
    found = told[peer]
    return dict(flat(found)) if isinstance(found, Mapping) else {"": str(found)}


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *rest = rows
    made = [head, ["---"] * len(head), *rest]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in made)


def plots(told: Mapping[str, Told], folder: Path) -> list[str]:
    """Draw how costs grow with size, and how we compare; give the names of the files."""
    drawn = []
    if bars := [
        (f"{bench} {name}".replace("_", " "), float(value))
        for bench, each in told.items()
        for name, value in flat(each.get("ratio") or {})
    ]:
        _draw_ratios(bars, folder / "ratios.png")
        drawn.append("ratios")
    for title, (bench, unit, path) in GROWTHS.items():
        if bench in told and (curves := _curves(told[bench], path)):
            name = f"growth-{title.replace(' ', '-')}"
            _draw_growth(curves, title, unit, folder / f"{name}.png")
            drawn.append(name)
    return drawn


def _curves(told: Told, path: Sequence[str]) -> dict[str, list[tuple[int, float]]]:
    """Find costs by size: {size: cost}, or {size: {figure: cost}}."""
    at: Any = told
    for step in path:
        at = at.get(step) if isinstance(at, Mapping) else None
    curves: dict[str, list[tuple[int, float]]] = {}
    for size, cost in at.items() if isinstance(at, Mapping) else ():
        if not str(size).isdecimal():
            continue
        several = {name: cost[name] for name in DRAWN if name in cost} if isinstance(cost, Mapping) else {"": cost}
        for name, value in several.items():
            curves.setdefault(name, []).append((int(size), float(value)))
    return {name: sorted(points) for name, points in curves.items() if len(points) > 1}


def _draw_growth(curves: Mapping[str, Sequence[tuple[int, float]]], title: str, unit: str, file: Path) -> None:
    from matplotlib.figure import Figure  # noqa: PLC0415 - only who draws needs it, and it takes a second to load

    figure = Figure(figsize=(5, 3), layout="constrained")
    axes = figure.add_subplot()
    for number, (name, points) in enumerate(curves.items()):
        style = ("-", "--", ":", "-.")[number % 4]
        axes.plot(*zip(*points, strict=True), marker="o", color=INK, linestyle=style, label=name.replace("_", " "))
    axes.set_xscale("log")
    sizes = sorted({size for points in curves.values() for size, _ in points})
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize=8)
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_title(f"{title}: cost against size", fontsize=10)
    axes.set_xlabel("rows there are", fontsize=8)
    axes.set_ylabel(unit, fontsize=8)
    axes.grid(color=PALE, linewidth=0.5)
    if list(curves) != [""]:
        axes.legend(fontsize=7, frameon=False)
    _save(figure, file)


def _draw_ratios(bars: Sequence[tuple[str, float]], file: Path) -> None:
    from matplotlib.figure import Figure  # noqa: PLC0415 - as above

    figure = Figure(figsize=(7, 0.8 + 0.2 * len(bars)), layout="constrained")
    axes = figure.add_subplot()
    names, values = zip(*reversed(bars), strict=True)
    axes.barh(names, [value - 1 for value in values], left=1, color=[INK if each >= 1 else PALE for each in values])
    axes.set_xscale("log")
    ticks = [each for each in (0.1, 0.25, 0.5, 1, 2, 5, 10, 50, 100) if min(values) / 2 <= each <= max(values) * 2]
    axes.set_xticks(ticks, [f"{each:g}" for each in ticks], fontsize=8)
    axes.minorticks_off()
    axes.axvline(1, color="black", linewidth=0.8)
    axes.tick_params(axis="y", labelsize=7)
    axes.set_title("how many times better than the peer (right of 1: we are)", fontsize=9)
    _save(figure, file)


def _save(figure: Any, file: Path) -> None:
    file.parent.mkdir(exist_ok=True)
    # Without its version in it, the same figures are the same file.
    figure.savefig(file, dpi=100, metadata={"Software": None})


def main() -> None:
    """Write the report of the full results."""
    print(f"wrote {write(HERE / 'results')}")


if __name__ == "__main__":
    main()
