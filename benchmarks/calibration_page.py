"""Writes docs/calibration.md from the committed results of ``python -m benchmarks.calibration``.

``python -m benchmarks.calibration_page``
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks import experiment as ex
from benchmarks.calibration import OURS, WANTED
from benchmarks.calibration_laws import LAWS
from benchmarks.calibration_peers import PEERS

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "calibration.md"
RESULTS = ex.RESULTS / "calibration.json"
INTRODUCTION = """\
# Which test keeps its level

A test of level .05 should reject a true null in .05 of data sets, whatever the law of the data.
This page is written by `python -m benchmarks.calibration_page` from
`benchmarks/results/calibration.json`; `python -m benchmarks.calibration` measures it. The laws, and
how x and y depend on each other off the null, are in `benchmarks/calibration_laws.py`.

![Type I error and power, by law, test and number of rows](../benchmarks/results/calibration.png)

*Type I error*: the share of data sets under the null that are called dependent at level .05.
*Power*: the same where the errors of x and y share .3. In brackets: the exact 95% interval of the
type I error, and the numbers of data sets under the null and off it. What is wanted is .03 to .075;
**bold** is what lies outside. With fewer than 500 data sets a cell counts as outside where it lies
beyond that by more than its own chance error at .05 allows. A test that is exact is outside with
500 data sets in about one cell of 50, by chance. All cells of one size draw from the same seeds:
laws that share their errors, as the two of Zhang et al., have nearly the same rate, and are one
piece of evidence rather than two.
"""
PEERS_RESULTS = ex.RESULTS / "calibration_peers.json"
PEERS_INTRODUCTION = """\
## Beside other packages

All tests on the same data sets (`benchmarks/results/calibration_peers.json`): type I error of 100,
whose chance error is .02, then power of 40. causal-learn's and pgmpy's tests have their defaults;
causal-learn's FastKCI took longer than there was time for.
"""


def number(rate: float) -> str:
    """.05 for 0.05; 1.00 for 1."""
    return f"{rate:.3f}".removeprefix("0")


def _cell(row: ex.Row) -> str:
    low, high = (number(end) for end in row.type_1_interval)
    rate = number(row.type_1)
    if row.verdict in ("below", "above"):
        rate = f"**{rate}**"
    counted = f"{row.type_1_data_sets}, {row.power_data_sets}"
    return f"{rate} ({low} to {high}), power {row.power:.2f} ({counted})"


def _table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _lines(rows: Sequence[ex.Row], sizes: Sequence[int]) -> Iterable[Sequence[str]]:
    for law in LAWS:
        for test in (*OURS, *PEERS):
            of_test = {r.n_samples: r for r in rows if r.law == law.name and r.test == test}
            if of_test:
                cells = [_cell(of_test[n]) if n in of_test else "-" for n in sizes]
                words = [text.replace("|", "\\|") for text in (law.name, law.about)]
                yield [*words, f"`{test}`", *cells]


def _beside(rows: Sequence[ex.Row]) -> str:
    """The table of our tests and others, a line a law and size."""
    names = [name for name in (*OURS, *PEERS) if any(row.test == name for row in rows)]
    cells = {(row.law, row.n_samples, row.test): row for row in rows}
    lines = []
    for law in LAWS:
        for n in sorted({row.n_samples for row in rows if row.law == law.name}):
            found = [cells.get((law.name, n, name)) for name in names]
            rates = [f"{number(r.type_1)}, {r.power:.2f}" if r else "-" for r in found]
            lines.append([law.name.replace("|", "\\|"), f"{n:,}", *rates])
    return PEERS_INTRODUCTION + "\n" + _table(["law", "rows", *names], lines) + "\n"


def page(rows: Sequence[ex.Row], beside: Sequence[ex.Row] = ()) -> str:
    """The whole text of docs/calibration.md, of the board's rows and those of the run with other
    packages.
    """
    parts = [INTRODUCTION]
    for named, title in ((True, "The test that the docs name"), (False, "The other tests")):
        chosen = [row for row in rows if row.named is named]
        sizes = sorted({row.n_samples for row in chosen})
        if not chosen:
            continue
        heads = ["law", "x and y given Z", "test", *(f"{n:,} rows" for n in sizes)]
        out = [row for row in chosen if row.verdict in ("below", "above")]
        few = sum(row.type_1_data_sets < 500 for row in chosen)
        parts.append(
            f"## {title}\n\nCells: {len(chosen)}; outside {number(WANTED[0])} to "
            f"{number(WANTED[1])}: {len(out)}; of fewer than 500 data sets: {few}.\n\n"
            + _table(heads, _lines(chosen, sizes))
            + "\n"
        )
    if beside:
        parts.append(_beside(beside))
    return "\n".join(parts)


def written() -> str:
    """The text that follows from the committed results."""
    beside = ex.read_rows(PEERS_RESULTS) if PEERS_RESULTS.is_file() else ()
    return page(ex.read_rows(RESULTS), beside)


def main() -> None:
    """Writes the page."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    DOCUMENT.write_text(written(), encoding="utf-8")
    print(f"wrote {DOCUMENT}")


if __name__ == "__main__":
    main()
