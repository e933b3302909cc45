"""Five papers beside our results: for every table and figure the published number, ours, and a
verdict.

``python -m benchmarks.papers [--quick | --full] [--out FILE]``

Without options the committed results are read, the tables printed, and docs/papers.md written.
``--full`` first runs every script with ``--resume``: what the results lack is measured (hours).
``--quick`` runs the scripts small, in a folder that goes away (up to 5 minutes), and prints what
these runs say; its numbers are those of few and small runs, so only their kind can be compared, and
nothing is written.

A claim (:mod:`benchmarks.papers_claims`) states its verdict, and a rule that finds it from the
numbers; where the two differ the run ends with an error.  A published number that could not be read
at its source is "not at hand"; none is guessed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import experiment as ex
from benchmarks.papers_results import Claim, Missing, Results

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "papers.md"
#: the scripts, and the options of a quick run; where the numbers of records are equal, they share
#: what they compile, which is most of their time
QUICK: dict[str, tuple[str, ...]] = {
    "priv_pc": ("--networks", "cancer", "--per-round", "1", "--methods", "published"),
    "priv_pc_tests": ("--networks", "asia"),
    "pcd_figure1": ("--runs", "5"),
    "pcd_figure2": ("--sizes", "200", "--methods", "K + I"),
    "pcd_sachs": ("--rows", "200", "--methods", "K + I", "Priv-PC"),
    "private_tests": ("--tests", "PrivGCM", "PrivCRT"),
    "kusner_table2": (),
    "kusner_figures": (),
    "local_multi": ("--cases", "galton", "--p-max", "0.1", "--epsilons", "20"),
    "local_pairs": ("--pairs", "20", "--methods", "RECI", "IGCI", "CDS", "ANM"),
    "priv_fci": ("--networks", "cancer"),
}
#: after which what is running is stopped
QUICK_SECONDS = 240
#: a cache of compiled programs for all scripts of a quick run: in its folder, or where the
#: environment says
SHARED = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
INTRODUCTION = """# The papers, beside our results

Written by `python -m benchmarks.papers` from the files in `benchmarks/results`; do not edit.
*Reproduced*: the published number or statement holds in our runs. *Contradicted*: it does
not, and why. *Not comparable*: the two measure different things, or the published number could not
be read, or our runs cannot tell. "Not at hand" stands where we could not read a published number;
none is guessed. "A round", "a gradient": an epsilon that is paid again and again; the total is what
the method says after its run.
"""


def line(claim: Claim, results: Results) -> list[str]:
    """The cells of a claim.  Raises AssertionError where its rule finds another verdict."""
    try:
        ours, found = claim.found(results)
    except Missing as missing:
        return [claim.item, claim.what, claim.published, "not run", "", str(missing)]
    if results.whole and found is not claim.verdict:
        raise AssertionError(
            f"{claim.item}, {claim.what}: stated {claim.verdict.value}, found {found.value} "
            f"({ours} against {claim.published})"
        )
    return [claim.item, claim.what, claim.published, ours, found.value, claim.why]


HEADS = ("table or figure", "what", "published", "ours", "verdict", "why, and where it is from")


def document(papers: Sequence[tuple[str, Sequence[Claim]]], results: Results) -> str:
    """The whole text of docs/papers.md."""
    parts = [INTRODUCTION]
    for title, claims in papers:
        rows = [HEADS, ["---"] * len(HEADS), *(line(claim, results) for claim in claims)]
        cells = [[cell.replace("|", "\\|") or "-" for cell in row] for row in rows]
        parts.append(f"\n## {title}\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in cells))
    parts.append("\n\n## Rows left out\n")
    for name, entries in results.left_out().items():
        parts.append(f"\n- `{name}.json`: " + "; ".join(entries))
    return "\n".join(parts).replace("\n\n\n", "\n\n").rstrip() + "\n"


def show(papers: Sequence[tuple[str, Sequence[Claim]]], results: Results) -> None:
    """The tables on the screen."""
    console = Console(width=170)
    for title, claims in papers:
        table = Table(title=title)
        for head in HEADS:
            table.add_column(head, overflow="fold")
        for claim in claims:
            table.add_row(*line(claim, results))
        console.print(table)


def run(names: Sequence[str], options: dict[str, tuple[str, ...]], folder: Path) -> None:
    """Runs scripts one after the other until the time is up, each into a file of the folder."""
    start = time.perf_counter()
    shared = {"JAX_COMPILATION_CACHE_DIR": str(folder / "compiled"), **SHARED, **os.environ}
    for name in names:
        left = QUICK_SECONDS - (time.perf_counter() - start)
        if left < 20:
            print(f"{name} is left out: the five minutes are over")
            continue
        words = [sys.executable, "-m", f"benchmarks.{name}", "--quick", *options[name]]
        words += ["--out", str(folder / f"{name}.json")]
        try:
            subprocess.run(
                words, timeout=left, check=True, capture_output=True, text=True, env=shared
            )
        except subprocess.TimeoutExpired:
            print(f"{name} was stopped: the five minutes are over")
        except subprocess.CalledProcessError as failed:
            reason = failed.stderr.strip().rpartition("error: ")[2]
            # 2 is what argparse ends with; a script that lacks its data says where to get it
            if failed.returncode != 2 or "JAXCD_DATA" not in reason:
                raise RuntimeError(f"benchmarks.{name} failed: {failed.stderr}") from failed
            print(f"{name} is left out: {reason}")
            continue
        print(f"{name}: {time.perf_counter() - start:.0f} s so far")


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints, and writes the document."""
    from benchmarks.papers_claims import PAPERS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small runs, up to 5 minutes")
    size.add_argument("--full", action="store_true", help="measure what the results lack: hours")
    parser.add_argument("--out", type=Path, default=DOCUMENT, help=f"default: {DOCUMENT}")
    chosen = parser.parse_args(arguments)
    if chosen.quick:
        with tempfile.TemporaryDirectory() as folder:
            run(list(QUICK), QUICK, Path(folder))
            show(PAPERS, Results(Path(folder), whole=False))
        return
    if chosen.full:
        for name in QUICK:
            words = [sys.executable, "-m", f"benchmarks.{name}", "--resume"]
            subprocess.run(words, check=True)
    results = Results(ex.RESULTS)
    show(PAPERS, results)
    chosen.out.write_text(document(PAPERS, results), encoding="utf-8")
    print(f"wrote {chosen.out}")


if __name__ == "__main__":
    main()
