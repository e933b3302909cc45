"""Tables and pictures of :mod:`benchmarks.frontier`, from the rows of its file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table

from benchmarks import experiment as ex
from benchmarks.frontier_methods import Regime

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = Sequence[ex.Row]
CLOSE = 0.05  # of no privacy
SCORES = {"arc_f1": "arc F1", "skeleton_f1": "skeleton F1"}
#: published totals beyond are not drawn
MOST_DRAWN = 300.0
_REGIMES = {
    Regime.PURE.value: "pure epsilon",
    Regime.APPROXIMATE.value: "(epsilon, 1e-6)",
    Regime.EX_POST.value: "computed afterwards, not proved",
}


def _name(entry: Mapping[str, Any]) -> str:
    """A method with its kind of price."""
    short = {
        Regime.PURE.value: "pure",
        Regime.APPROXIMATE.value: "delta 1e-6",
        Regime.EX_POST.value: "not proved",
    }
    regime = short.get(entry["regime"], entry["regime"])
    return f"{entry['method'].removesuffix(', published')} ({regime})"


def _cases(rows: Rows) -> list[tuple[str, int]]:
    names = list(dict.fromkeys(row["network"] for row in rows))
    return sorted(
        {(row["network"], row["n_samples"]) for row in rows},
        key=lambda case: (names.index(case[0]), case[1]),
    )


def _total(row: Mapping[str, Any]) -> float:
    return math.inf if row["total_epsilon"] is None else row["total_epsilon"]


def _lines(rows: Rows) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """The rows of each method and regime, by total."""
    lines: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        lines.setdefault((row["method"], row["regime"]), []).append(row)
    return {line: sorted(found, key=_total) for line, found in lines.items()}


def summarise(rows: Rows) -> list[dict[str, Any]]:
    """For each method and case the smallest total from which on all its rows are within ``CLOSE``
    of the better reference.

    arc_f1, skeleton_f1: that total, or None where the row of the largest total is not that close.
    reference_*: what "no privacy" is there, and ``reference`` whose arc F1 it is.  largest: the
    largest total that was run: nothing is said about larger ones.
    """
    summary = []
    for name, n in _cases(rows):
        here = [row for row in rows if (row["network"], row["n_samples"]) == (name, n)]
        references = [row for row in here if row["reference"]]
        if not references:
            continue
        best = {score: max(row[score] for row in references) for score in SCORES}
        whose = max(references, key=lambda row: row["arc_f1"])["method"]
        for (method, regime), line in _lines(here).items():
            if not Regime(regime).is_private:
                continue
            reached = {score: _reached(line, score, best[score]) for score in SCORES}
            largest = max(map(_total, line))
            summary.append(
                {
                    "network": name,
                    "n_samples": n,
                    "method": method,
                    "regime": regime,
                    **reached,
                    "reference": whose,
                    **{f"reference_{score}": value for score, value in best.items()},
                    "largest": largest if math.isfinite(largest) else None,
                    "n_prices": len(line),
                }
            )
    return summary


def _reached(line: Rows, score: str, reference: float) -> float | None:
    found = None
    for row in reversed(line):
        # A total that is infinite is no price at all.
        if not (row[score] >= reference - CLOSE and math.isfinite(_total(row))):
            break
        found = _total(row)
    return found


def case_table(rows: Rows, name: str, n: int) -> Table:
    """Arc F1 (and its standard error) of every method of a case, against the total."""
    here = [row for row in rows if row.like(network=name, n_samples=n)]
    fixed = (Regime.PURE.value, Regime.APPROXIMATE.value)
    totals = sorted({row["epsilon"] for row in here if row["regime"] in fixed})
    f1 = ex.Column("", "arc_f1", ".2f", error=True)
    lines = []
    for line in _lines(here).values():
        last = line[-1]
        if last["regime"] == Regime.EX_POST.value:
            cells = [f"{row['arc_f1']:.2f} at {_total(row):.3g}" for row in line[-len(totals) :]]
        elif Regime(last["regime"]).is_private:
            by_total = {row["epsilon"]: f1.cell(row) for row in line}
            cells = [by_total.get(total, "") for total in totals]
        else:
            cells = [f1.cell(last)]
        shown = dict(zip((f"{total:g}" for total in totals), cells, strict=False))
        skeleton, seconds = f"{last['skeleton_f1']:.2f}", f"{last['seconds']:.2f}"
        lines.append({"method": _name(last), **shown, "skeleton": skeleton, "seconds": seconds})
    heads = ("method", *(f"{total:g}" for total in totals), "skeleton", "seconds")
    return ex.table_of(
        lines,
        [ex.Column(head) for head in heads],
        f"{name}, {n:,} rows: arc F1 (standard error) at total epsilon; skeleton F1 and seconds at "
        "the last",
    )


def summary_tables(summary: Sequence[Mapping[str, Any]]) -> list[Table]:
    """One table a number of rows: the smallest total epsilon for arc and for skeleton F1."""
    tables = []
    for n in sorted({entry["n_samples"] for entry in summary}):
        lines: dict[str, dict[str, str]] = {"": {"method": "F1 without privacy"}}
        for entry in (entry for entry in summary if entry["n_samples"] == n):
            network, method = entry["network"], _name(entry)
            lines[""][network] = " / ".join(f"{entry[f'reference_{s}']:.2f}" for s in SCORES)
            line = lines.setdefault(method, {"method": method})
            line[network] = " / ".join(_price(entry[score]) for score in SCORES)
        title = (
            f"{n:,} rows: total epsilon from which on arc F1 / skeleton F1 stay within {CLOSE} of "
            "no privacy (-: not reached)"
        )
        columns = [ex.Column(name) for name in dict.fromkeys(("method", *lines[""]))]
        tables.append(ex.table_of(lines.values(), columns, title))
    return tables


def _price(total: float | None) -> str:
    return "-" if total is None else f"{total:.3g}"


def left_out_table(left_out: Sequence[Mapping[str, Any]]) -> Table:
    """What was not run, and why."""
    lines: dict[tuple[Any, ...], dict[str, Any]] = {}
    for entry in left_out:
        group = entry["network"], entry["n_samples"], _name(entry), entry["reason"]
        named = dict(zip(("network", "rows", "method", "reason"), group, strict=True))
        line = lines.setdefault(group, {**named, "epsilons": []})
        line["epsilons"] += [] if entry["epsilon"] is None else [f"{entry['epsilon']:g}"]
    columns = ex.columns_of(
        "network; rows:,; method",
        ex.Column("epsilon", lambda line: ", ".join(line.epsilons)),
        "reason",
    )
    return ex.table_of(lines.values(), columns, "left out")


def draw(rows: Rows, summary: Sequence[Mapping[str, Any]], path: Path) -> None:
    """A picture for each network, and one of the summary, in files beside ``path``."""
    for name in dict.fromkeys(row["network"] for row in rows):
        ex.save_picture(network_figure(rows, name), path.with_name(f"{path.stem}_{name}.png"))
    if summary:
        ex.save_picture(summary_figure(summary), path.with_suffix(".png"))


def network_figure(rows: Rows, name: str) -> Figure:
    """F1 against the total epsilon of one network: a column of panels for each number of rows, a
    line for each score and regime.
    """
    here = [row for row in rows if row["network"] == name]
    sizes = sorted({row["n_samples"] for row in here})
    regimes = [regime for regime in _REGIMES if any(row["regime"] == regime for row in here)]
    regimes = [regime for regime in regimes if regime != Regime.EX_POST.value] or regimes
    kinds = [(score, regime) for score in SCORES for regime in regimes]
    # One colour a method, whatever its regime and panel.
    methods = list(dict.fromkeys(row["method"] for row in here if row["regime"] in regimes))
    ex_post = [row["method"] for row in here if row["regime"] == Regime.EX_POST.value]
    published = list(dict.fromkeys(ex_post))
    width = 3.6 * max(len(sizes), 2) / max(len(sizes), 1)
    figure, axes = ex.panels(
        len(kinds), len(sizes), width=width, height=2.7, sharex=True, sharey=True
    )
    handles: dict[str, Any] = {}
    for column, n in enumerate(sizes):
        lines = _lines([row for row in here if row["n_samples"] == n])
        for place, (score, regime) in enumerate(kinds):
            ax = axes[place, column]
            for (_, own), line in lines.items():
                points = [(_total(row), row[score]) for row in line if _total(row) <= MOST_DRAWN]
                xy = np.reshape(points, (-1, 2)).T
                label, style = _style(line[0], regime, methods, published)
                if own in (regime, Regime.EX_POST.value):
                    (handles[label],) = ax.plot(*xy, label=label, **style)
                elif style:
                    handles[label] = ax.axhline(line[0][score], label=label, **style)
            ax.set(xscale="log", ylim=(-0.03, 1.03))
            ax.grid(alpha=0.25, linewidth=0.5)
            if column == 0:
                ax.set_ylabel(f"{SCORES[score]}, {_REGIMES[regime]}")
        axes[0, column].set_title(f"{name}, {n:,} rows", fontsize=10)
        axes[-1, column].set_xlabel("total epsilon")
    where = {"loc": "outside lower center", "ncols": 2 if len(sizes) < 3 else 3}
    figure.legend(handles.values(), handles.keys(), fontsize=8, **where)
    return figure


def summary_figure(summary: Sequence[Mapping[str, Any]]) -> Figure:
    """The smallest total epsilon within ``CLOSE`` of no privacy (arc F1) of every method (a line)
    on every case (a column).
    """
    from matplotlib.colors import LogNorm

    cases = _cases(summary)
    lines = list(dict.fromkeys((entry["regime"], entry["method"]) for entry in summary))
    lines.sort(key=lambda line: list(_REGIMES).index(line[0]))
    values = np.full((len(lines), len(cases)), np.nan)
    ran = np.zeros(values.shape, dtype=bool)
    best = {}
    for entry in summary:
        line, case = (entry["regime"], entry["method"]), (entry["network"], entry["n_samples"])
        place = lines.index(line), cases.index(case)
        ran[place], best[case] = True, entry["reference_arc_f1"]
        values[place] = np.nan if entry["arc_f1"] is None else entry["arc_f1"]
    figure, axes = ex.panels(1, 1, width=0.42 * len(cases) + 4.6, height=0.26 * len(lines) + 1.8)
    ax = axes[0, 0]
    known = values[np.isfinite(values)]
    norm = LogNorm(min(0.05, known.min(initial=0.05)), max(10.0, known.max(initial=10.0)))
    ax.imshow(np.where(ran, 0.9, 1.0), cmap="gray", vmin=0, vmax=1, aspect="auto")
    image = ax.imshow(values, cmap="viridis_r", norm=norm, aspect="auto")
    for i, j in np.argwhere(ran):
        value = values[i, j]
        look = {"color": "w" if np.isfinite(value) and norm(value) > 0.55 else "k", "fontsize": 7}
        text = "-" if np.isnan(value) else f"{value:.2g}"
        ax.text(j, i, text, ha="center", va="center", **look)
    labels = [f"{name}, {n:,} ({best[name, n]:.2f})" for name, n in cases]
    turned = {"rotation": 60, "ha": "right", "rotation_mode": "anchor", "fontsize": 7}
    ax.set_xticks(range(len(cases)), labels, **turned)
    labels = [_name({"method": method, "regime": regime}) for regime, method in lines]
    ax.set_yticks(range(len(lines)), labels, fontsize=8)
    figure.suptitle(
        f"total epsilon from which on arc F1 stays within {CLOSE} of no privacy\n(whose F1 is in "
        "brackets; -: not reached)",
        fontsize=9,
    )
    figure.colorbar(image, ax=ax, label="total epsilon", shrink=0.8)
    return figure


def _style(
    row: ex.Row, regime: str, methods: Sequence[str], published: Sequence[str]
) -> tuple[str, dict[str, Any]]:
    """The label of a method's line, and how it looks in a panel of a regime; empty where it is not
    drawn.
    """
    method, own = row["method"], row["regime"]
    if own == regime:
        place = methods.index(method)
        dashes = "-" if place < 10 else "--"
        look = {"color": f"C{place % 10}", "marker": "o", "markersize": 3.5, "linestyle": dashes}
        return method, look
    if own == Regime.EX_POST.value:
        marker = "x+*"[published.index(method) % 3]
        look = {"color": "0.45", "marker": marker, "linestyle": ":", "linewidth": 1}
        return f"{method} (total {_REGIMES[own]})", look
    if row["reference"]:
        width = 1.4 if method.startswith("best") else 0.9
        return f"{method}, {own}", {"color": "k", "linestyle": (0, (5, 2)), "linewidth": width}
    if own == Regime.NO_DATA.value:
        return f"{method}, {own}", {"color": "0.7", "linestyle": (0, (1, 1)), "linewidth": 0.9}
    return method, {}
