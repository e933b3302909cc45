"""Effects from releases: do intervals cover, how wide are they, and are wrong graphs found?

``python -m benchmarks.effects [--quick] [--data FOLDER] [--parts given whole learned linear
falsify] [--networks NAME ...] [--rows N ...] [--epsilons E ...] [--runs R] [--draws D] [--resume]
[--out FILE]``

*given.*  The true DAG is given, and the estimate is the default one.  All ordered pairs of columns
of which the first has an effect on the second, of networks of up to 4,096 cells from ``Histogram``
at pure epsilon, of others from ``Marginals`` at (epsilon, 1e-6).  A treatment with more than two
levels is compared at its first and last; of an outcome with more levels the mean place is looked
at.  Truth: the network with the
treatment's table taken out.  *Covered*: share of the nominal 95 % intervals with the truth inside;
*ignoring*: the table of the adjustment set read as counts, without its noise.  *Width*: median over
intervals of the width over that of the interval from the same rows without privacy, by the optimal
set.  *Adjusted*, and its *width*: the same of ``whole_graph=False``, of the first 50 data sets as
are *ignoring* and the widths.  *Wide*: share of the intervals that are at least half as wide as
what is possible, which mostly cover whatever the rows say, and *others covered*: the coverage of
the rest.  *Open*: share of the effects whose tables the release did not measure; their interval is
all that is possible, and counts in no other column.  The standard error of the coverage is over
data sets, whose intervals share rows and noise.

*whole.*  As *given*, by ``whole_graph=True``, of networks of up to 4,096 cells.  *Like*: median
width over that of the same interval from the rows without noise, which takes the whole DAG for
right as well.

*learned.*  The graph from the same release, as ``graph=None`` has it with ``--draws`` draws: share
of truths inside the union of intervals, median width of the union, and how often the found graph is
the true class.

*linear.*  Random linear Gaussian models of 10 and 20 variables (as in ``benchmarks.releases``):
total effects from ``SecondMoments``, the DAG given.

*falsify.*  Share of the runs in which ``falsify`` rejects the true DAG at .05, and the true DAG
with two arcs reversed or removed (drawn anew in each of the first 100 runs, acyclic).  Reversed
arcs that leave the class as it is are drawn again: no data can tell.

Run r takes data seed r and noise seed r + 555.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Iterator
from functools import cache
from statistics import median
from typing import Any

import jax
import numpy as np

import jaxcd
from benchmarks import experiment as ex
from benchmarks.sources import load_networks
from jaxcd.advice.choosing import n_cells
from jaxcd.data.structural import linear_gaussian_sem
from jaxcd.effects.door import estimated
from jaxcd.effects.estimating import TableEstimator
from jaxcd.effects.identification import possibilities
from jaxcd.effects.likelihood import Contrast, profile_interval
from jaxcd.effects.whole_graph import WholeGraph
from jaxcd.graphs import Adjustment, MixedGraph, dag_to_cpdag, random_dag

DELTA = 1e-6
NOISE_SEED = 555
LEVEL = 0.95
KEY = ("part", "name", "n_samples", "epsilon", "n_runs")
PARTS = ("given", "whole", "learned", "linear", "falsify")
MOST_CELLS = 4096
MOST_WHOLE = 12  # data sets of *whole*: an interval takes a second
MOST_LINEAR = 100  # data sets of *linear*
MOST_WRONG = 100  # data sets of *falsify* in which wrong graphs are tested
NO_NOISE = 0.05  # the scale that stands for it: a cell is then known to less than a row
COMPARED = 50  # data sets of which the other two intervals are computed


class Truth:
    """The pairs of a network with an effect, and the effects."""

    def __init__(self, network: Any) -> None:
        self.network, self.graph = network, MixedGraph.from_dag(network.dag)
        names = network.names
        self.pairs = [
            (x, y)
            for x in names
            for y in names
            if x != y and Adjustment(self.graph, x, y).may_affect
        ]
        self.options = {pair: possibilities(self.graph, *pair)[0] for pair in self.pairs}
        self.effects = {pair: self.effect(*pair) for pair in self.pairs}
        self._exact: dict[tuple[int, int], dict[tuple[str, str], tuple[float, float]]] = {}

    def levels(self, x: str) -> tuple[Any, Any]:
        """The first and the last."""
        known = self.network.domain[x].levels
        return known[0], known[-1]

    def effect(self, x: str, y: str) -> float:
        """E[s(y) | do(x = last)] - E[s(y) | do(x = first)], exactly."""
        network = self.network
        place = {name: k for k, name in enumerate(network.names)}
        operands: list[Any] = []
        for v in network.names:
            if v != x:
                operands += [network.cpts[v], [place[u] for u in (*network.parents[v], v)]]
        table = np.einsum(*operands, [place[x], place[y]], optimize="greedy")
        table = table / table.sum(axis=1, keepdims=True)
        scores = np.arange(table.shape[1], dtype=np.float64)
        return float(scores @ (table[-1] - table[0]))

    def exact(self, data: Any, seed: int) -> dict[tuple[str, str], tuple[float, float]]:
        """The intervals from the rows of a seed, by the optimal sets; kept for other epsilons."""
        n = data.n_samples
        if (n, seed) not in self._exact:
            found = self._exact[n, seed] = {}
            for x, y in self.pairs:
                table = counted(data, (x, y, *self.graph.optimal_adjustment_set(x, y)))
                contrast = Contrast(0, table.shape[0] - 1, np.arange(table.shape[1], dtype=float))
                interval = profile_interval(table, contrast, variance=0.0, n_samples=n)
                found[x, y] = interval.low, interval.high
        return self._exact[n, seed]


def bought(network: Any, n: int, epsilon: float | None, seed: int) -> tuple[Any, Any]:
    """The rows and their release; None for no privacy."""
    data = network.sample(n, key=jax.random.key(seed))
    small = n_cells(network.domain) <= MOST_CELLS
    kind: Any = jaxcd.Histogram() if small else jaxcd.Marginals()
    if epsilon is None:
        return data, jaxcd.release(data, kind, budget=jaxcd.NO_PRIVACY)
    budget = jaxcd.Budget(epsilon) if small else jaxcd.Budget(epsilon, DELTA)
    noise = jaxcd.SimulatedNoise(ex.key(NOISE_SEED, seed))
    return data, jaxcd.release(data, kind, budget=budget, noise=noise)


def counted(data: Any, names: tuple[str, ...]) -> np.ndarray:
    """The table of the rows."""
    sizes = [data.domain[name].cardinality for name in names]
    codes = data.codes[:, [data.domain.names.index(name) for name in names]].T
    flat = np.ravel_multi_index(codes, sizes)
    return np.bincount(flat, minlength=math.prod(sizes)).reshape(*sizes[:2], -1).astype(float)


def measure_given(truth: Truth, n: int, epsilon: float, runs: int) -> dict[str, Any]:
    """Coverage with the true DAG."""
    inside, ignoring, ratios, open_ones, plain, by_run = [], [], [], 0, [], []
    adjusted, adjusted_ratios = [], []
    wide: list[bool] = []
    by_pair: dict[str, list[bool]] = {}
    for seed in range(runs):
        data, release = bought(truth.network, n, epsilon, seed)
        before = len(inside)
        for pair in truth.pairs:
            estimator = TableEstimator(
                release, *pair, levels=truth.levels(pair[0]), outcome_level=None
            )
            contrast, option = estimator.contrast, truth.options[pair]
            _, found, _ = estimated(estimator, option, LEVEL, None)
            target = truth.effects[pair]
            if math.isnan(found.estimate):
                open_ones += 1
                continue
            inside.append(found.low <= target <= found.high)
            wide.append(found.high - found.low >= contrast.span)
            by_pair.setdefault(" -> ".join(pair), []).append(inside[-1])
            if seed >= COMPARED:
                continue
            low, high = truth.exact(data, seed)[pair]
            width = max(high - low, 1e-12)
            plain.append(low <= target <= high)
            ratios.append((found.high - found.low) / width)
            given = estimator.chosen(option)
            if given is None:
                continue
            table = release.tabulated().table((*pair, *given)).counts
            alone = profile_interval(
                table.reshape(*table.shape[:2], -1), contrast, variance=0.0, n_samples=n
            )
            ignoring.append(alone.low <= target <= alone.high)
            by_set = estimator.interval(given, LEVEL)
            adjusted.append(by_set.low <= target <= by_set.high)
            adjusted_ratios.append((by_set.high - by_set.low) / width)
        by_run.append(ex.mean(inside[before:] or [LEVEL]))
    others = [covered for covered, is_wide in zip(inside, wide, strict=True) if not is_wide]
    worst = min(by_pair, key=lambda name: np.mean(by_pair[name])) if by_pair else None
    return {
        "coverage": ex.mean(inside) if inside else None,
        "coverage_se": ex.standard_error(by_run),
        "ignoring": ex.mean(ignoring) if ignoring else None,
        "without_privacy": ex.mean(plain) if plain else None,
        "width": median(ratios) if ratios else None,
        "adjusted": ex.mean(adjusted) if adjusted else None,
        "adjusted_width": median(adjusted_ratios) if adjusted_ratios else None,
        "wide": ex.mean(wide) if wide else None,
        "others": ex.mean(others) if others else None,
        "open": open_ones / (runs * len(truth.pairs)),
        "n_intervals": len(inside),
        "worst_pair": worst,
        "worst_coverage": None if worst is None else ex.mean(by_pair[worst]),
    }


def measure_whole(network: Any, n: int, epsilon: float, runs: int) -> dict[str, Any]:
    """Coverage by the likelihood of the true DAG on the whole histogram."""
    truth, inside, plain, by_run = Truth(network), [], [], []
    ratios, like = [], []
    for seed in range(runs):
        data, release = bought(network, n, epsilon, seed)
        joint, before = release.tabulated().joint, len(inside)
        graph = truth.graph.reordered(joint.names)
        cells = np.zeros(joint.values.shape)
        places = [data.domain.names.index(name) for name in joint.names]
        np.add.at(cells, tuple(data.codes[:, places].T), 1.0)
        noiseless = WholeGraph(cells, scale=NO_NOISE, n_samples=n, graph=graph)
        for pair in truth.pairs:
            estimator = TableEstimator(
                release, *pair, levels=truth.levels(pair[0]), outcome_level=None
            )
            found = estimator.by_graph(truth.graph, LEVEL)
            x, y = (joint.names.index(name) for name in pair)
            exact = noiseless.interval(x, y, estimator.contrast, LEVEL)
            if found is None or exact is None:
                continue
            target = truth.effects[pair]
            inside.append(found.low <= target <= found.high)
            plain.append(exact.low <= target <= exact.high)
            best = truth.graph.optimal_adjustment_set(*pair)
            adjusted = profile_interval(
                counted(data, (*pair, *best)), estimator.contrast, variance=0.0, n_samples=n
            )
            ratios.append((found.high - found.low) / max(adjusted.high - adjusted.low, 1e-12))
            like.append((found.high - found.low) / max(exact.high - exact.low, 1e-12))
        by_run.append(ex.mean(inside[before:] or [LEVEL]))
    return {
        "coverage": ex.mean(inside),
        "coverage_se": ex.standard_error(by_run),
        "without_privacy": ex.mean(plain),
        "width": median(ratios),
        "like": median(like),
        "open": 1 - len(inside) / (runs * len(truth.pairs)),
        "n_intervals": len(inside),
    }


def measure_learned(network: Any, n: int, epsilon: float, runs: int, draws: int) -> dict[str, Any]:
    """Coverage of the union over graphs that were found in the release."""
    truth, inside, widths, exact, point = Truth(network), [], [], [], []
    seconds = []
    for seed in range(runs):
        _, release = bought(network, n, epsilon, seed)
        with ex.Clock() as clock:
            graphs = jaxcd.effects.drawn_graphs(release, n_draws=draws)
        seconds.append(clock.seconds)
        exact.append(float(graphs[0] == network.cpdag()))
        for pair in truth.pairs:
            options: dict[str, Any] = {
                "treatment": pair[0],
                "outcome": pair[1],
                "levels": truth.levels(pair[0]),
            }
            found = jaxcd.effect(release, graph=graphs, **options)
            target = truth.effects[pair]
            inside.append(found.low <= target <= found.high)
            widths.append(found.high - found.low)
            point.append(any(one.low <= target <= one.high for one in found.possible))
    return {
        "coverage": ex.mean(inside),
        "covered_by_one": ex.mean(point),
        "width": median(widths),
        "true_class": ex.mean(exact),
        "n_intervals": len(inside),
        "seconds": median(seconds),
    }


def measure_linear(p: int, n: int, epsilon: float | None, runs: int) -> dict[str, Any]:
    """Coverage of coefficients, the DAG given."""
    inside, ratios, errors, by_run = [], [], [], []
    for seed in range(runs):
        dag = random_dag(p, expected_degree=2.0, seed=seed)
        model_key, data_key = jax.random.split(jax.random.key(seed))
        model = linear_gaussian_sem(dag, key=model_key)
        data = model.sample(n, key=data_key)
        names = list(data.domain.names)
        weights = np.zeros((p, p))
        for node in names:
            mechanism = model.mechanisms[node]
            for parent, weight in zip(mechanism.parents, mechanism.weights, strict=True):
                weights[names.index(parent), names.index(node)] = weight
        total = np.linalg.inv(np.eye(p) - weights)
        releases = {}
        for private in (True, False):
            budget = jaxcd.Budget(epsilon, DELTA) if private else jaxcd.NO_PRIVACY
            noise = jaxcd.SimulatedNoise(ex.key(NOISE_SEED, seed)) if private else None
            releases[private] = jaxcd.release(
                data, jaxcd.SecondMoments(), budget=budget, noise=noise
            )
        graph, before = MixedGraph.from_dag(dag), len(inside)
        for x, y in ((a, b) for a in names for b in names if a != b):
            if not Adjustment(graph, x, y).may_affect:
                continue
            found, exact = (
                jaxcd.effect(releases[private], treatment=x, outcome=y, graph=graph)
                for private in (True, False)
            )
            target = float(total[names.index(x), names.index(y)])
            inside.append(found.low <= target <= found.high)
            errors.append(exact.low <= target <= exact.high)
            ratios.append((found.high - found.low) / (exact.high - exact.low))
        by_run.append(ex.mean(inside[before:] or [LEVEL]))
    return {
        "coverage": ex.mean(inside),
        "coverage_se": ex.standard_error(by_run),
        "without_privacy": ex.mean(errors),
        "width": median(ratios),
        "n_intervals": len(inside),
    }


def changed(network: Any, how: str, seed: int) -> MixedGraph:
    """The true DAG with two arcs reversed, or removed; of another class."""
    rng = np.random.default_rng([seed, how == "reversed"])
    names, true = list(network.names), MixedGraph.from_dag(network.dag)
    arcs = list(network.dag.edges)
    while True:
        matrix = np.array(true.directed)
        for k in rng.choice(len(arcs), size=2, replace=False):
            i, j = (names.index(name) for name in arcs[k])
            matrix[i, j] = False
            matrix[j, i] = how == "reversed"
        graph = MixedGraph.from_arcs(names, matrix)
        if graph.is_dag() and dag_to_cpdag(graph) != network.cpdag():
            return graph


def measure_falsify(network: Any, n: int, epsilon: float, runs: int) -> dict[str, Any]:
    """How often graphs are rejected."""
    counts: dict[str, list[float]] = {"true": [], "reversed": [], "removed": [], "chance": []}
    tested = []
    for seed in range(runs):
        _, release = bought(network, n, epsilon, seed)
        several = seed < MOST_WRONG
        found = jaxcd.falsify(release, network.dag, n_permutations=20 * several)
        counts["true"].append(float(found.falsified))
        if not several:
            continue
        counts["chance"].append(float(found.chance_pvalue <= 0.05))
        tested.append(found.n_tested / found.n_implied)
        for how in ("reversed", "removed"):
            wrong = changed(network, how, seed)
            counts[how].append(float(jaxcd.falsify(release, wrong, n_permutations=0).falsified))
    return {**ex.means(counts), "tested": ex.mean(tested)}


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """A row for each part, network, size and epsilon."""
    loaded = load_networks(chosen.networks, chosen.data)

    @cache
    def truth(name: str) -> Truth:
        return Truth(loaded[name])

    for part in chosen.parts:
        for n in chosen.rows:
            for epsilon in chosen.epsilons:
                if part == "linear":
                    for p in (10, 20):
                        runs = min(chosen.runs, MOST_LINEAR)
                        values = (part, f"gaussian-{p}", n, epsilon, runs)
                        yield values, measure_linear, p, n, epsilon, runs
                    continue
                for name, network in loaded.items():
                    values = (part, name, n, epsilon, chosen.runs)
                    if part == "given":
                        yield values, measure_given, truth(name), n, epsilon, chosen.runs
                    elif part == "whole":
                        if n_cells(network.domain) > MOST_CELLS:
                            continue
                        runs = min(chosen.runs, MOST_WHOLE)
                        values = (part, name, n, epsilon, runs)
                        yield values, measure_whole, network, n, epsilon, runs
                    elif part == "learned":
                        runs = chosen.runs
                        yield values, measure_learned, network, n, epsilon, runs, chosen.draws
                    elif part == "falsify":
                        yield values, measure_falsify, network, n, epsilon, chosen.runs


EXPERIMENT = ex.Experiment(
    "effects",
    __doc__,
    KEY,
    jobs,
    columns=ex.columns_of(
        "part; network=name; rows=n_samples:,; epsilon; runs=n_runs; intervals=n_intervals; "
        "covered (se)=coverage+:.3f; ignoring=ignoring:.3f; without privacy=without_privacy:.3f; "
        "width=width:.2f; adjusted=adjusted:.3f; "
        "width of it=adjusted_width:.2f; wide=wide:.2f; others covered=others:.3f; like=like:.2f; "
        "open=open:.2f; true class=true_class:.2f; "
        "true rejected=true:.3f; reversed=reversed:.2f; removed=removed:.2f"
    ),
    options=(
        ex.data_option("networks/*.bif"),
        ex.names("--parts", "what is measured", full=list(PARTS), quick=["given"]),
        ex.names(
            "--networks",
            "default: asia, sachs and child",
            full=["asia", "sachs", "child"],
            quick=["asia"],
        ),
        ex.counts("--rows", "records", (10_000, 100_000), (5_000,)),
        ex.numbers("--epsilons", "total epsilons", (0.3, 1.0, 4.0), (1.0,)),
        ex.one_count("--runs", "data sets of each row", 200, 2),
        ex.one_count("--draws", "draws of graphs", 10, 1),
    ),
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
