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

from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import experiment as ex
from benchmarks.kusner_table2 import differences, options, pairs_of, settings
from benchmarks.pairs import SCORES
from jaxcd.pairwise.anm_scores import Protect

EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
PENALTIES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
LAMBDA_EPSILONS = (1.0, 10.0)
LAMBDA_SCORES = ("HSIC", "log IQR")
KEY = ("figure", "score", "protect", "penalty", "epsilon")


def plot_epsilon(rows: Sequence[ex.Row], path: Path) -> None:
    """A line a score; dotted: without noise."""
    figure, ((ax,),) = ex.panels(1, 1, width=4.2, height=3.0)
    for i, name in enumerate(SCORES):
        exact, *line = [row for row in rows if row.like(figure="epsilon", score=name)]
        xy = [row.epsilon for row in line], [row.right for row in line]
        ax.plot(*xy, "o-", markersize=3, color=f"C{i}", label=name)
        ax.axhline(exact.right, color=f"C{i}", linestyle=":", linewidth=1)
    ax.set(xscale="log", xlabel="epsilon", ylabel="P[right direction]", ylim=(0, 1.03))
    ax.set_title("test half protected; dotted: no noise")
    ex.save_picture(figure, path, legend=2)


def plot_lambda(rows: Sequence[ex.Row], path: Path) -> None:
    """A panel a score."""
    figure, (axes,) = ex.panels(1, len(LAMBDA_SCORES), width=4.2, height=3.0, sharey=True)
    for ax, name in zip(axes, LAMBDA_SCORES, strict=True):
        for style, protect in (("--", Protect.TRAIN.value), ("-", Protect.BOTH.value)):
            for i, epsilon in enumerate((None, *LAMBDA_EPSILONS)):
                wanted = {"figure": "lambda", "score": name, "protect": protect, "epsilon": epsilon}
                line = [row for row in rows if row.like(**wanted)]
                xy = [row.penalty for row in line], [row.right for row in line]
                words = "no noise" if epsilon is None else f"epsilon = {epsilon:g}"
                ax.plot(*xy, style, color=f"C{i}", label=f"{protect} rows, {words}")
        ax.set(xscale="log", xlabel="lambda", ylim=(0, 1.03), title=name)
    axes[0].set_ylabel("P[right direction]")
    ex.save_picture(figure, path, legend=2)


def measure(
    pairs: Sequence[Any],
    name: str,
    epsilons: Sequence[float],
    n_splits: int,
    protect: Protect = Protect.TEST,
    penalty: float | None = None,
) -> list[dict[str, Any]]:
    """One row an epsilon, and one without noise."""
    found = differences(
        pairs, score=SCORES[name], n_splits=n_splits, protect=protect, penalty=penalty
    )
    shares = {None: found.accuracy, **{e: found.probability(e) for e in epsilons}}
    return [{"epsilon": e, "right": float(share.mean())} for e, share in shares.items()]


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Four scores by epsilon; two by lambda, with the training half or all rows protected."""
    pairs = pairs_of(chosen)
    for name in SCORES:
        values = "epsilon", name, Protect.TEST.value, None
        yield values, measure, pairs, name, EPSILONS, chosen.splits
    for name in LAMBDA_SCORES:
        for protect in (Protect.TRAIN, Protect.BOTH):
            # Where all rows both train and test there is no split to repeat.
            splits = 1 if protect is Protect.BOTH else chosen.splits
            for penalty in PENALTIES[::4] if chosen.quick else PENALTIES:
                yield (
                    ("lambda", name, protect.value, penalty),
                    measure,
                    pairs,
                    name,
                    LAMBDA_EPSILONS,
                    splits,
                    protect,
                    penalty,
                )


def draw(rows: Sequence[ex.Row], path: Path) -> None:
    """Both figures."""
    for name, plot in (("epsilon", plot_epsilon), ("lambda", plot_lambda)):
        plot(rows, path.with_name(f"{path.stem}_{name}.png"))


EXPERIMENT = ex.Experiment(
    "kusner_figures",
    __doc__,
    KEY,
    jobs,
    columns=ex.columns_of(
        "figure; score; rows=protect; lambda=penalty:g; epsilon:g|no noise; P[right]=right:.3f"
    ),
    options=options(10),
    settings=settings,
    draw=draw,
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
