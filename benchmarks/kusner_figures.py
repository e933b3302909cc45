"""Kusner et al. 2016, the figures: the probability of the right private direction against epsilon,
and against lambda.

``python -m benchmarks.kusner_figures [--quick] [--data FOLDER] [--pairs K] [--splits S] [--rows N]
[--out FILE]``

Pairs, bounds and the probability are those of :mod:`benchmarks.kusner_table2`.  Epsilon: four
scores, the test half protected, direction alone.  Lambda: the two scores whose training rows can be
protected (HSIC, log IQR), with the training half or all rows protected, at epsilon 1 and 10.  A
large lambda regresses too little and the scores differ less; a small one lets a record move the
residuals further, and the noise grows.  Between them is a hump, whose place depends on epsilon and
on the number of records.

Three files: NAME.json, NAME_epsilon.png and NAME_lambda.png.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import common
from benchmarks.kusner_table2 import begin, differences, options_of
from benchmarks.pairs import SCORES
from jaxcd.pairwise.anm_scores import Protect

EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
PENALTIES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
LAMBDA_EPSILONS = (1.0, 10.0)
LAMBDA_SCORES = ("HSIC", "log IQR")
KEY = ("figure", "score", "protect", "penalty", "epsilon")


def rows_by_epsilon(pairs: Sequence[Any], name: str, *, n_splits: int) -> list[dict[str, Any]]:
    """One row an epsilon, and one without noise."""
    found = differences(pairs, score=SCORES[name], n_splits=n_splits)
    base = {"figure": "epsilon", "score": name, "protect": Protect.TEST.value, "penalty": None}
    rows: list[dict[str, Any]] = [{**base, "epsilon": None, "right": float(found.accuracy.mean())}]
    return rows + [
        {**base, "epsilon": epsilon, "right": float(found.probability(epsilon).mean())}
        for epsilon in EPSILONS
    ]


def rows_by_lambda(
    pairs: Sequence[Any], name: str, protect: Protect, penalty: float, *, n_splits: int
) -> list[dict[str, Any]]:
    """One row an epsilon, and one without noise, of one lambda."""
    found = differences(
        pairs, score=SCORES[name], n_splits=n_splits, protect=protect, penalty=penalty
    )
    base = {"figure": "lambda", "score": name, "protect": protect.value, "penalty": penalty}
    rows: list[dict[str, Any]] = [{**base, "epsilon": None, "right": float(found.accuracy.mean())}]
    return rows + [
        {**base, "epsilon": epsilon, "right": float(found.probability(epsilon).mean())}
        for epsilon in LAMBDA_EPSILONS
    ]


def plot_epsilon(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """A line a score; dotted: without noise."""
    figure, (ax,) = _figure(1)
    for i, name in enumerate(SCORES):
        line = [row for row in rows if (row["figure"], row["score"]) == ("epsilon", name)]
        ax.plot(
            [row["epsilon"] for row in line[1:]],
            [row["right"] for row in line[1:]],
            "o-",
            markersize=3,
            color=f"C{i}",
            label=name,
        )
        ax.axhline(line[0]["right"], color=f"C{i}", linestyle=":", linewidth=1)
    ax.set(
        xscale="log",
        xlabel="epsilon",
        ylabel="P[right direction]",
        ylim=(0, 1.03),
        title="test half protected; dotted: no noise",
    )
    _save(figure, path)


def plot_lambda(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """A panel a score."""
    figure, axes = _figure(len(LAMBDA_SCORES))
    for ax, name in zip(axes, LAMBDA_SCORES, strict=True):
        for style, protect in (("--", Protect.TRAIN.value), ("-", Protect.BOTH.value)):
            for i, epsilon in enumerate((None, *LAMBDA_EPSILONS)):
                line = [
                    row
                    for row in rows
                    if all(
                        row[k] == v for k, v in zip(KEY, ("lambda", name, protect), strict=False)
                    )
                ]
                line = [row for row in line if row["epsilon"] == epsilon]
                words = "no noise" if epsilon is None else f"epsilon = {epsilon:g}"
                label = f"{protect} rows, {words}"
                ax.plot(
                    [row["penalty"] for row in line],
                    [row["right"] for row in line],
                    style,
                    color=f"C{i}",
                    label=label,
                )
        ax.set(xscale="log", xlabel="lambda", ylim=(0, 1.03), title=name)
    axes[0].set_ylabel("P[right direction]")
    _save(figure, path)


def _figure(n_panels: int) -> tuple[Any, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * n_panels + 0.4, 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(1, n_panels, squeeze=False, sharey=True).flat


def _save(figure: Any, path: Path) -> None:
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8
    )
    common.save_picture(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the benchmark."""
    options = options_of(__doc__.splitlines()[0], "kusner_figures")
    chosen, pairs, record = begin(options, arguments, splits=3, key=KEY)
    for name in SCORES:
        for row in rows_by_epsilon(pairs, name, n_splits=chosen.splits):
            record.add(row)
    for name in LAMBDA_SCORES:
        for protect in (Protect.TRAIN, Protect.BOTH):
            # Where all rows both train and test there is no split to repeat.
            n_splits = 1 if protect is Protect.BOTH else chosen.splits
            for penalty in PENALTIES[::4] if chosen.quick else PENALTIES:
                for row in rows_by_lambda(pairs, name, protect, penalty, n_splits=n_splits):
                    record.add(row)
    for row in record.rows:
        if row["epsilon"] is not None:
            of = (
                f"lambda = {row['penalty']:g}, {row['protect']} rows"
                if row["figure"] == "lambda"
                else f"{row['protect']} rows"
            )
            print(
                f"{row['score']:<9} epsilon = {row['epsilon']:<5g} {of:<28} P[right] = "
                f"{row['right']:.3f}"
            )
    print(f"wrote {chosen.out}")
    for name, plot in (("epsilon", plot_epsilon), ("lambda", plot_lambda)):
        plot(record.rows, chosen.out.with_name(f"{chosen.out.stem}_{name}.png"))


if __name__ == "__main__":
    main()
