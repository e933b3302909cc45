"""What the ways of ``benchmarks.reading`` have in common: the table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import jaxcd
from benchmarks import experiment, reading


@pytest.mark.parametrize("file", reading.FILES)
@pytest.mark.parametrize("table", reading.TABLES)
def test_all_ways_read_the_same_table(tmp_path: Path, table: str, file: str) -> None:
    pytest.importorskip("polars")
    domain = reading.domain_of(table, file)
    path = tmp_path / ("table.parquet" if file == "parquet" else "table.csv")
    reading.write(path, table, file, 3_000)  # enough to be read fast
    found = {way: reading.read(way, path, domain) for way in reading.WAYS}
    for way, rows in found.items():
        frame = rows.to_frame() if isinstance(rows, jaxcd.Dataset) else rows
        assert len(frame) == 3_000
        for name, column in domain.columns.items():
            # an inferred column of few whole numbers is one of levels
            cells = [cell if column.is_discrete else float(cell) for cell in list(frame[name])]
            assert cells == [type(cells[0])(cell) for cell in list(found["pandas"][name])], way


def test_the_readme_tells_the_committed_results() -> None:
    rows = experiment.read_rows(experiment.RESULTS / "reading.json")
    ours = [row for row in rows if row.way.startswith("jaxcd")]
    assert len(ours) == 2 * len(reading.TABLES) * len(reading.FILES)
    ratios = sorted(row.seconds_to_polars for row in ours)
    text = " ".join(Path(__file__).parents[1].joinpath("README.md").read_text().split())
    told = re.search(r"in (\S+) to (\S+) times Polars' time and at most (\S+) GiB", text)
    assert told is not None
    assert [float(part) for part in told.groups()] == [
        round(ratios[0], 1),
        round(ratios[-1], 1),
        pytest.approx(max(row.peak_mib for row in ours) / 1024, abs=0.01),
    ]
