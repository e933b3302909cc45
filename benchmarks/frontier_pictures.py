"""Tables and pictures of :mod:`benchmarks.frontier`, from the rows of its file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table

from benchmarks import common
from benchmarks.frontier_methods import Regime

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = Sequence[Mapping[str, Any]]

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
    """Arc F1 (and its standard deviation) of every method of a case, against the total."""
    here = [row for row in rows if (row["network"], row["n_samples"]) == (name, n)]
    totals = sorted(
        {
            row["epsilon"]
            for row in here
            if row["regime"] in (Regime.PURE.value, Regime.APPROXIMATE.value)
        }
    )
    table = Table(
        title=f"{name}, {n:,} rows: arc F1 (standard deviation) at total epsilon; skeleton F1 and "
        "seconds at the last"
    )
    for column in ("method", *(f"{total:g}" for total in totals), "skeleton", "seconds"):
        table.add_column(column, justify="left" if column == "method" else "right", no_wrap=True)
    for line in _lines(here).values():
        last = line[-1]
        if last["regime"] == Regime.EX_POST.value:
            cells = (
                [f"{row['arc_f1']:.2f} at {_total(row):.3g}" for row in line[-len(totals) :]]
                if totals
                else []
            )
        elif Regime(last["regime"]).is_private:
            by_total = {
                row["epsilon"]: f"{row['arc_f1']:.2f} ({row['arc_f1_sd']:.2f})" for row in line
            }
            cells = [by_total.get(total, "") for total in totals]
        else:
            cells = [f"{last['arc_f1']:.2f} ({last['arc_f1_sd']:.2f})"][: len(totals)]
        cells += [""] * (len(totals) - len(cells))
        table.add_row(_name(last), *cells, f"{last['skeleton_f1']:.2f}", f"{last['seconds']:.2f}")
    return table


def summary_tables(summary: Rows) -> list[Table]:
    """One table a number of rows: the smallest total epsilon for arc and for skeleton F1."""
    tables = []
    for n in sorted({entry["n_samples"] for entry in summary}):
        here = [entry for entry in summary if entry["n_samples"] == n]
        names = list(dict.fromkeys(entry["network"] for entry in here))
        table = Table(
            title=f"{n:,} rows: total epsilon from which on arc F1 / skeleton F1 stay within "
            f"{CLOSE} of no privacy (-: not reached)"
        )
        table.add_column("method", no_wrap=True)
        for name in names:
            table.add_column(name, justify="right", no_wrap=True)
        first = {name: next(entry for entry in here if entry["network"] == name) for name in names}
        values = (
            f"{first[name]['reference_arc_f1']:.2f} / {first[name]['reference_skeleton_f1']:.2f}"
            for name in names
        )
        table.add_row("F1 without privacy", *values, end_section=True)
        for method, regime in dict.fromkeys((entry["method"], entry["regime"]) for entry in here):
            found = {
                entry["network"]: entry
                for entry in here
                if (entry["method"], entry["regime"]) == (method, regime)
            }
            cells = [
                " / ".join(_price(found[name][score]) for score in SCORES) if name in found else ""
                for name in names
            ]
            table.add_row(_name({"method": method, "regime": regime}), *cells)
        tables.append(table)
    return tables


def _price(total: float | None) -> str:
    return "-" if total is None else f"{total:.3g}"


def left_out_table(left_out: Rows) -> Table:
    """What was not run, and why."""
    table = Table(title="left out")
    for column in ("network", "rows", "method", "epsilon", "reason"):
        table.add_column(column, no_wrap=column != "reason")
    grouped: dict[tuple[Any, ...], list[Any]] = {}
    for entry in left_out:
        grouped.setdefault(
            (entry["network"], entry["n_samples"], _name(entry), entry["reason"]), []
        ).append(entry["epsilon"])
    for (name, n, method, reason), epsilons in grouped.items():
        prices = [f"{epsilon:g}" for epsilon in epsilons if epsilon is not None]
        table.add_row(name, f"{n:,}", method, ", ".join(prices), reason)
    return table


def draw(rows: Rows, summary: Rows, path: Path) -> dict[str, Path]:
    """A picture for each network, and one of the summary, in files beside ``path``; which is
    where.
    """
    written = {}
    for name in dict.fromkeys(row["network"] for row in rows):
        written[name] = _save(network_figure(rows, name), path.with_name(f"{path.stem}_{name}.png"))
    if summary:
        written["summary"] = _save(summary_figure(summary), path.with_suffix(".png"))
    return written


def _save(figure: Figure, path: Path) -> Path:
    common.save_picture(figure, path)
    return path


def _figure(width: float, height: float) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def network_figure(rows: Rows, name: str) -> Figure:
    """F1 against the total epsilon of one network: a column of panels for each number of rows, a
    line for each score and regime.
    """
    here = [row for row in rows if row["network"] == name]
    sizes = sorted({row["n_samples"] for row in here})
    regimes = [regime for regime in _REGIMES if any(row["regime"] == regime for row in here)]
    regimes = [regime for regime in regimes if regime != Regime.EX_POST.value] or regimes
    panels = [(score, regime) for score in SCORES for regime in regimes]
    # One colour a method, whatever its regime and panel.
    methods = list(dict.fromkeys(row["method"] for row in here if row["regime"] in regimes))
    published = list(
        dict.fromkeys(row["method"] for row in here if row["regime"] == Regime.EX_POST.value)
    )
    figure = _figure(3.6 * max(len(sizes), 2) + 0.4, 2.7 * max(len(panels), 1) + 1.5)
    axes = figure.subplots(max(len(panels), 1), len(sizes), squeeze=False, sharex=True, sharey=True)
    handles: dict[str, Any] = {}
    for column, n in enumerate(sizes):
        lines = _lines([row for row in here if row["n_samples"] == n])
        for place, (score, regime) in enumerate(panels):
            ax = axes[place, column]
            for (method, own), line in lines.items():
                points = [(_total(row), row[score]) for row in line if _total(row) <= MOST_DRAWN]
                if own == regime:
                    style: dict[str, Any] = {
                        "color": f"C{methods.index(method) % 10}",
                        "marker": "o",
                        "markersize": 3.5,
                    }
                    style["linestyle"] = "-" if methods.index(method) < 10 else "--"
                    handles[method] = ax.plot(
                        *np.reshape(points, (-1, 2)).T, label=method, **style
                    )[0]
                elif own == Regime.EX_POST.value:
                    style = {
                        "color": "0.45",
                        "marker": "x+*"[published.index(method) % 3],
                        "linestyle": ":",
                        "linewidth": 1,
                    }
                    label = f"{method} (total {_REGIMES[own]})"
                    handles[label] = ax.plot(*np.reshape(points, (-1, 2)).T, label=label, **style)[
                        0
                    ]
                elif not Regime(own).is_private and (
                    line[0]["reference"] or own == Regime.NO_DATA.value
                ):
                    dashes = (0, (5, 2)) if line[0]["reference"] else (0, (1, 1))
                    colour = "k" if line[0]["reference"] else "0.7"
                    label = f"{method}, {own}"
                    width = 1.4 if method.startswith("best") else 0.9
                    handles[label] = ax.axhline(
                        line[0][score], color=colour, linestyle=dashes, linewidth=width, label=label
                    )
            ax.set(xscale="log", ylim=(-0.03, 1.03))
            ax.grid(alpha=0.25, linewidth=0.5)
            if column == 0:
                ax.set_ylabel(f"{SCORES[score]}, {_REGIMES[regime]}")
    for column, n in enumerate(sizes):
        axes[0, column].set_title(f"{name}, {n:,} rows", fontsize=10)
        axes[-1, column].set_xlabel("total epsilon")
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="outside lower center",
        ncols=2 if len(sizes) < 3 else 3,
        fontsize=8,
    )
    return figure


def summary_figure(summary: Rows) -> Figure:
    """The smallest total epsilon within ``CLOSE`` of no privacy (arc F1) of every method (a line)
    on every case (a column).
    """
    from matplotlib.colors import LogNorm

    cases = _cases(summary)
    lines = list(dict.fromkeys((entry["regime"], entry["method"]) for entry in summary))
    order = list(_REGIMES)
    lines.sort(key=lambda line: order.index(line[0]))
    values = np.full((len(lines), len(cases)), np.nan)
    ran = np.zeros(values.shape, dtype=bool)
    for entry in summary:
        place = (
            lines.index((entry["regime"], entry["method"])),
            cases.index((entry["network"], entry["n_samples"])),
        )
        ran[place] = True
        if entry["arc_f1"] is not None:
            values[place] = entry["arc_f1"]
    figure = _figure(0.42 * len(cases) + 5.0, 0.26 * len(lines) + 2.8)
    ax = figure.subplots()
    known = values[np.isfinite(values)]
    norm = LogNorm(min(0.05, known.min(initial=0.05)), max(10.0, known.max(initial=10.0)))
    ax.imshow(np.where(ran, 0.9, 1.0), cmap="gray", vmin=0, vmax=1, aspect="auto")
    image = ax.imshow(values, cmap="viridis_r", norm=norm, aspect="auto")
    for i, j in np.argwhere(ran):
        value = values[i, j]
        dark = bool(np.isfinite(value)) and norm(value) > 0.55
        ax.text(
            j,
            i,
            "-" if np.isnan(value) else f"{value:.2g}",
            ha="center",
            va="center",
            fontsize=7,
            color="w" if dark else "k",
        )
    best = {(entry["network"], entry["n_samples"]): entry["reference_arc_f1"] for entry in summary}
    labels = [f"{name}, {n:,} ({best[name, n]:.2f})" for name, n in cases]
    ax.set_xticks(
        range(len(cases)), labels, rotation=60, ha="right", rotation_mode="anchor", fontsize=7
    )
    ax.set_yticks(
        range(len(lines)),
        [_name({"method": method, "regime": regime}) for regime, method in lines],
        fontsize=8,
    )
    figure.suptitle(
        f"total epsilon from which on arc F1 stays within {CLOSE} of no privacy\n(whose F1 is in "
        "brackets; -: not reached)",
        fontsize=9,
    )
    figure.colorbar(image, ax=ax, label="total epsilon", shrink=0.8)
    return figure
