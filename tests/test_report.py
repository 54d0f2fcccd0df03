"""The report of the benches: ours, the peers' and the ratios side by side, who is missing, and plots."""

import json
from pathlib import Path

from bench import report

MACHINE = {"cores": 2, "date": "2026-01-01", "load_1m": 0.1, "redis": None}
ENGINE = {
    "imprint": {"drain_per_s": 900, "range": [800, 950]},
    "pgqueuer": {"drain_per_s": 450},
    "bullmq": "not installed: redis-server (Debian: apt-get install redis-server)",
    "ratio": {"pgqueuer": {"drain_per_s": 2.0}},
    "machine": MACHINE,
    "asked_for": "--jobs 10",
}
GROWTH = {
    "imprint": {"growth": {"10": {"claim_us": 5.0}, "1000": {"claim_us": 6.0}, "ratio": {"claim": 1.2}}},
    "machine": MACHINE,
}


def test_ours_theirs_and_the_ratio(tmp_path: Path) -> None:
    """One row for each figure; a peer that is missing is named, and costs are drawn against sizes."""
    results = tmp_path / "some"
    results.mkdir()
    for name, told in (("engine", ENGINE), ("growth", GROWTH)):
        (results / f"{name}.json").write_text(json.dumps(told))
    path = report.write(results)
    written = path.read_text()
    assert "|  | imprint | pgqueuer | ratio |" in written
    assert "| drain per s | 900 | 450 | 2.0 |" in written
    assert "bullmq: not installed: redis-server" in written
    assert "`python -m bench.engine --jobs 10`" in written
    assert "![growth-clock-and-claim](plots/growth-clock-and-claim.png)" in written
    for name in ("ratios", "growth-clock-and-claim"):
        assert (results / "plots" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in (results / "plots").iterdir() if path.stat().st_size > 100_000] == []


def test_what_a_bench_says_fits_a_few_lines() -> None:
    """Each contender has a line, and so has the comparison."""
    said = report.lines(ENGINE)
    assert said[0] == "imprint: drain_per_s 900, range 800 to 950"
    assert said[-1].startswith("ratio (above 1: we are better): pgqueuer drain_per_s 2.0")
    assert len(said) == 4
