"""What the command line shows."""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

import jaxcd
from jaxcd.api import Choice
from jaxcd.checks import counted, printable
from jaxcd.cli.options import Loaded
from jaxcd.cli.shared import tell
from jaxcd.discovery import EdgeConfidence
from jaxcd.graphs.knowledge import given_edges
from jaxcd.privacy.budget import PrivacyCost, counted_records, delta_warning
from jaxcd.privacy.rounding import promise_in_words
from jaxcd.report import FILES, graph_json, grouped_ledger, metrics_json

__all__ = [
    "Progress",
    "print_json",
    "print_recommendation",
    "show_files",
    "show_graph",
    "show_guarantees",
    "show_plan",
    "show_release",
    "show_result",
    "show_search",
    "warn",
]

_SCORES = {
    "arc_f1": "arcs",
    "skeleton_f1": "skeleton",
    "orientation_f1": "orientations",
    "mark_f1": "marks",
}


class _Screen(Console):
    """Names are no markup, and lines are left to the terminal: a graph must survive copy, paste and
    grep.  Whoever reads it may go, as ``head`` does: the run goes on, for its files.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=True)

    def on_broken_pipe(self) -> None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


def _line(console: Console, label: str, words: str) -> None:
    console.print(Text.assemble((f"{printable(label):<11}", "bold"), printable(words)))


class Progress:
    """The levels of a search, or the steps of a run on a release, on stderr: a bar on a terminal,
    else a line each.
    """

    def __init__(self, shown: bool, *, max_level: int | None) -> None:
        self._shown, self._screen = shown, _Screen(stderr=True)
        self._n_levels = None if max_level is None else max_level + 1
        self._bar: Any = None

    def __enter__(self) -> Progress:
        if self._shown and sys.stderr.isatty():
            from rich import progress

            self._bar = progress.Progress(
                progress.TextColumn("{task.description}"),
                progress.BarColumn(),
                progress.TimeElapsedColumn(),
                console=self._screen,
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task("starting", total=self._n_levels)
        return self

    def report(self, level: Any) -> None:
        """Shows a LevelRecord, or a Step."""
        words, (done, total) = str(level), level.progress
        if self._bar is not None:
            self._bar.update(
                self._task, completed=done, total=total or self._n_levels, description=words
            )
        elif self._shown:
            self._screen.print(printable(words))

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


def show_plan(
    loaded: Loaded, budget: Any, choice: Choice, noise: Any, knowledge: Path | None = None
) -> None:
    """What will be run, and why, before it is run."""
    console = _Screen()
    private = isinstance(budget, jaxcd.Budget)
    _line(console, "data", loaded.words)
    _line(
        console,
        "budget",
        f"{budget}, fixed before the data is read" if private else "none: no privacy",
    )
    _line(console, "algorithm", choice.algorithm.value)
    for reason in choice.reasons:
        label, _, words = reason.partition(": ")
        _line(console, label, words)
    for words in choice.warnings:
        if f"warning: {words}" not in choice.reasons:
            _line(console, "warning", words)
    if knowledge is not None:
        _line(console, "knowledge", f"{knowledge}, which must not come from the data")
    if choice.alpha is not None:
        _line(console, "alpha", f"{choice.alpha:g}")
    if private:
        simulated = "simulated from the seed: not for release"
        _line(console, "noise", "secure, from the operating system" if noise is None else simulated)
    console.print()


def show_search(release: Path, bought: jaxcd.Release, how: str, knowledge: Path | None) -> None:
    """What was searched, and how."""
    console = _Screen()
    _line(
        console,
        "release",
        f"{release}: {bought.kind}, {counted_records(bought.n_samples, bought.cost.unit)}, "
        f"{counted(len(bought.names), 'column')}",
    )
    _line(console, "algorithm", how)
    if knowledge is not None:
        _line(console, "knowledge", f"{knowledge}, which must not come from the data")
    _line(console, "cost", "nothing more: the release has been paid for")
    console.print()


def show_result(
    run: jaxcd.DiscoveryResult, loaded: Loaded | None = None, *, told: Iterable[str] = ()
) -> None:
    """The graph, what it cost, and how close it is to the truth; told: the warnings that were shown
    before."""
    console = _Screen()
    size = f"{counted(run.graph.n_nodes, 'node')}, {counted(run.graph.n_edges, 'edge')}"
    console.print(Text(f"Graph: {size}", style="bold"))
    given = given_edges(run.info)
    for edge in run.graph.edges():
        mark = "  (given, not found)" if {edge.a, edge.b} in given else ""
        console.print(f"  {printable(str(edge))}{mark}")
    if not run.graph.n_edges:
        console.print(f"  {run.graph}")
    console.print()
    if run.confidence is not None:
        _show_confidence(console, run.graph, run.confidence, given)
    _line(console, "guarantee", str(run.cost))
    if not math.isinf(run.cost.epsilon):
        n_events = sum(row["count"] for row in grouped_ledger(run.info["ledger"]))
        spent = (
            f"{promise_in_words(run.spent.epsilon, run.spent.delta)} in "
            f"{counted(n_events, 'event')}"
        )
        _line(
            console,
            "spent",
            f"the ledger used {spent}, of {promise_in_words(run.cost.epsilon, run.cost.delta)}",
        )
    shown = set(told)
    if loaded is not None:  # opening the account said that of delta, on stderr
        cost, n_samples = run.cost, run.info.get("n_samples")
        of_delta = delta_warning(cost.epsilon, cost.delta, n_samples, unit=cost.unit)
        shown.update(() if of_delta is None else (of_delta,))
    for words in run.info.get("warnings", ()):
        if words not in shown:
            _line(console, "warning", words)
    if run.exhausted:
        console.print(
            "The answers that the budget pays for were exhausted: pairs without one kept their "
            "edges.",
            style="bold red",
        )
    if loaded is not None and loaded.truth is not None:
        console.print()
        console.print(Text(f"Against the true {loaded.truth_kind}", style="bold"))
        console.print("                   F1  precision  recall")
        scores = metrics_json(run.graph, loaded.truth)
        for name, label in _SCORES.items():
            if name not in scores:
                continue
            score = scores[name]
            console.print(
                f"  {label:<14}{score['f1']:7.3f}{score['precision']:11.3f}{score['recall']:8.3f}"
            )


def _show_confidence(
    console: Console,
    graph: jaxcd.MixedGraph,
    confidence: EdgeConfidence,
    given: Collection[Collection[str]],
) -> None:
    """How sure the edges are that were not given, and what the numbers are."""
    console.print(Text("Confidence in the edges", style="bold"))
    for line in confidence.in_words(graph, given=given).split("\n"):
        console.print(printable(line))
    console.print()


def show_files(folder: Path) -> None:
    """Where the report is."""
    console = _Screen()
    console.print()
    _line(
        console,
        "written",
        f"{folder}{'/' if not str(folder).endswith('/') else ''}: {', '.join(FILES)}",
    )


def show_release(path: Path) -> None:
    """Where the release is, and what it is good for."""
    _line(
        _Screen(),
        "release",
        f"{path}: what was bought; `{shlex.join(['jaxcd', 'search', str(path)])}` costs nothing "
        "more",
    )


def print_recommendation(found: jaxcd.advice.Recommendation) -> None:
    """A recommendation as one JSON object."""
    content = {
        "method": found.title,
        "algorithm": found.choice.algorithm.value,
        "call": found.call,
        "reasons": list(found.reasons),
        "alternatives": [
            {"method": other.title, "reason": other.reason} for other in found.alternatives
        ],
        "warning": found.warning,
        "delta_warning": found.delta_warning,
    }
    print(json.dumps(content, indent=2))


def print_json(run: jaxcd.DiscoveryResult, loaded: Loaded | None, folder: Path | None) -> None:
    """Everything as one JSON object on stdout; an infinite epsilon or rho is the text "inf"."""
    privacy = run.certificate()
    truth = None if loaded is None else loaded.truth
    content = {
        "graph": graph_json(run),
        **{name: value for name, value in privacy.items() if name not in ("format", "version")},
        "metrics": None if truth is None else metrics_json(run.graph, truth),
        "files": [] if folder is None else [str(folder / name) for name in FILES],
    }
    print(json.dumps(content, indent=2, allow_nan=False))


def show_graph(run: jaxcd.DiscoveryResult) -> None:
    """The graph and nothing else."""
    edges = [printable(str(edge)) for edge in run.graph.edges()]
    _Screen().print("\n".join(edges) or str(run.graph))


def warn(run: jaxcd.DiscoveryResult) -> None:
    """One line on stderr where a budget was given and the result is no private release."""
    warn_of(run.cost)


def warn_of(cost: PrivacyCost) -> None:
    """:func:`warn`, of what has this cost."""
    if not math.isinf(cost.epsilon) and not cost.proven:
        tell(f"jaxcd: warning: this result is not for release: {cost.reason}", error=True)


def show_guarantees(guarantees: Iterable[Any]) -> None:
    """The table of all mechanisms: each claim with what it assumes and where its proof stands."""
    console = Console(markup=False, highlight=False, emoji=False)
    table = Table(show_lines=False, box=None, pad_edge=False, header_style="bold")
    for heading in ("mechanism", "proved", "claim, what it assumes, and its proof"):
        table.add_column(heading, overflow="fold")
    for guarantee in guarantees:
        proved = Text(
            "yes" if guarantee.proven else "NO", style="green" if guarantee.proven else "red"
        )
        proof = "proof" if guarantee.proven else "no proof"
        words = f"{guarantee.claim}\nassumes: {guarantee.assumptions}\n{proof}: {guarantee.proof}\n"
        table.add_row(guarantee.mechanism, proved, words)
    console.print(table)
