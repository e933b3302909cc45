"""The whole of PC with RCIT, without privacy: time, the work that it is made of, and what it finds.

``python -m benchmarks.rcit_pc [--quick] [--resume] [--data FOLDER] [--structures NAME ...]
[--roots LAW ...] [--regressions WHICH ...] [--rows N] [--runs R] [--max-level L] [--out FILE]``

Data: additive nonlinear models (``jaxcd.data.structural.nonlinear_sem``: a drawn function of a
weighted sum of the parents, plus a normal error) on the structure of Alarm (37 variables) or on
random structures of so many variables and expected degree 2 ("random-15"), n = 8,000.  "roots": the
law of the columns without parents, of variance 1: uniform, normal, or t of three degrees of freedom
(heavy).  RCIT with 100 permutations, alpha = 0.05, no limit on conditioning sets.

"regression": "chosen" is the test as it is, "scores" as it was in version 0.1, for comparison: one
Gaussian kernel of the normal scores of Z, whatever the law.

Printed: numbers of tests, of residuals (a target given a set, shared by its tests) and of
factorisations (a set, shared by its targets), programs compiled, seconds with compilation and
processor seconds (summed over threads: what the run needs where other programs share the machine),
and F1 of arcs and skeleton against the true CPDAG, with the false and the missing edges.  Run r has
model r and data set r; later runs compile what the first did not.
"""

from __future__ import annotations

import math
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np

import jaxcd
from benchmarks import experiment as ex
from benchmarks.sources import load_networks
from jaxcd.citests.regressions import Candidate, Regressions
from jaxcd.data import structural
from jaxcd.graphs import random_dag
from jaxcd.ops import double_precision, gram, ridge

ALPHA = 0.05
PERMUTATIONS = 100
RANDOM = "random-"
EXPECTED_DEGREE = 2.0
ROOTS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "uniform": lambda rng, n: rng.uniform(-math.sqrt(3), math.sqrt(3), n),
    "normal": lambda rng, n: rng.normal(size=n),
    "heavy": lambda rng, n: rng.standard_t(3, n) / math.sqrt(3),
}


class _OnScores(Regressions):
    """The regression of version 0.1: nothing is chosen but the penalty."""

    def candidates(self, given: tuple[int, ...]) -> tuple[Candidate, ...]:
        return (Candidate("scores", "joint"),)

    def standardised_residuals(self, given: tuple[int, ...], targets: np.ndarray) -> np.ndarray:
        return self.residuals(given, targets)

    def first_jumps(self, given: Any, candidate: Any, few: np.ndarray, weights: Any) -> tuple[()]:
        return ()

    def more_jumps(self, given: Any, rest: np.ndarray, terms: Any, weights: Any) -> tuple[()]:
        return ()

    def _factorise(
        self, given: Any, candidate: Any, targets: np.ndarray, rank: int, **more: Any
    ) -> ridge.Smoother:
        z = self.coordinates(given, "scores")[: len(targets)]
        with double_precision():
            width = self._bandwidth * math.sqrt(2 * z.shape[1])
            factor = gram.nystroem(jnp.asarray(z), width, rank=rank).factor
            nothing = (jnp.zeros((len(z), 1)),)
            return ridge.smoother_of(factor, factor.T @ factor, nothing, n_head=len(z))


REGRESSIONS = {"chosen": Regressions, "scores": _OnScores}


def sample(model: structural.StructuralModel, n: int, roots: str, key: jax.Array) -> jaxcd.Dataset:
    """n rows of the model with such roots."""
    if roots == "normal":
        return model.sample(n, key=key)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
    columns: dict[str, np.ndarray] = {}
    for node in nx.topological_sort(model.dag):
        how = model.mechanisms[node]
        if how.parents:
            mean = how.mean(np.column_stack([columns[parent] for parent in how.parents]))
            columns[node] = mean + how.noise * rng.normal(size=n)
        else:
            columns[node] = ROOTS[roots](rng, n)
    return jaxcd.Dataset.from_array(
        np.column_stack([columns[name] for name in model.names]), names=list(model.names)
    )


def measure(
    structure: Callable[[int], nx.DiGraph],
    n: int,
    run: int,
    max_level: int | None,
    roots: str = "normal",
    regression: str = "chosen",
) -> dict[str, Any]:
    """One model, one data set, one search.  structure: of a run.  levels: (level, pairs asked,
    pairs separated, seconds since the start).
    """
    model_key, sample_key, test_key = jax.random.split(ex.key(40_000, run), 3)
    model = structural.nonlinear_sem(structure(run), key=model_key)
    data = sample(model, n, roots, sample_key)
    levels: list[tuple[int, int, int, float]] = []
    compiled, start = ex.Compilations(), time.perf_counter()

    def progress(level: jaxcd.discovery.LevelRecord) -> None:
        elapsed = time.perf_counter() - start
        levels.append((level.level, level.n_asked, level.n_separated, elapsed))
        print(
            f"  level {level.level}: {level.n_asked} pairs asked, {level.n_separated} "
            f"separated, {elapsed:.1f} s",
            flush=True,
        )

    with mock.patch("jaxcd.citests.rcit.Regressions", REGRESSIONS[regression]), ex.Clock() as clock:
        result = jaxcd.pc(
            data,
            test=jaxcd.RCIT(n_permutations=PERMUTATIONS),
            decider=jaxcd.Threshold(alpha=ALPHA),
            budget=jaxcd.NO_PRIVACY,
            key=test_key,
            max_level=max_level,
            progress=progress,
        )
    found = ex.scores([result.graph], model.cpdag())
    edges, true = (graph.marks != 0 for graph in (result.graph, model.cpdag()))
    return {
        "n_variables": len(model.names),
        **{name: result.info.get(name) for name in COUNTS},
        "n_compiled": compiled.n,
        "seconds": clock.seconds,
        "processor_seconds": clock.processor_seconds,
        "levels": levels,
        **{name: values[0] for name, values in found.items()},
        "n_false": int((edges & ~true).sum()) // 2,
        "n_missing": int((true & ~edges).sum()) // 2,
        "n_true": int(true.sum()) // 2,
    }


def _of_network(network: jaxcd.data.BayesianNetwork, run: int) -> nx.DiGraph:
    return network.dag


def _drawn(size: int, run: int) -> nx.DiGraph:
    return random_dag(size, expected_degree=EXPECTED_DEGREE, seed=run)


def structures(chosen: Namespace) -> dict[str, Callable[[int], nx.DiGraph]]:
    """The chosen structures by name: a network's own at every run, or a random one for each."""
    files = [name for name in chosen.structures if not name.startswith(RANDOM)]
    loaded = load_networks(files, chosen.data) if files else {}
    found: dict[str, Callable[[int], nx.DiGraph]] = {
        name: partial(_of_network, network) for name, network in loaded.items()
    }
    for name in chosen.structures:
        if name.startswith(RANDOM):
            found[name] = partial(_drawn, int(name.removeprefix(RANDOM)))
    return found


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """One row a run."""
    found = structures(chosen)
    for run in range(chosen.runs):
        for name, structure in found.items():
            for roots in chosen.roots:
                for regression in chosen.regressions:
                    print(f"{name}, {chosen.rows:,} rows, {roots} roots, {regression}, run {run}")
                    key = (name, chosen.rows, roots, regression, run)
                    yield key, measure, structure, *key[1:2], run, chosen.max_level, *key[2:4]


COUNTS = ("n_tests", "n_residuals", "n_factorisations")


def summary(record: ex.Record, chosen: Namespace, console: Any) -> dict[str, Any]:
    """Means over runs, each pair of regressions on the same data sets."""
    groups: dict[tuple[Any, ...], list[ex.Row]] = {}
    for row in record.rows:
        groups.setdefault((row.structure, row.n_samples, row.roots, row.regression), []).append(row)
    lines = [
        {
            **dict(zip(EXPERIMENT.key, group, strict=False)),
            "n_runs": len(rows),
            **ex.means({name: [row[name] for row in rows] for name in MEANS}),
        }
        for group, rows in sorted(groups.items())
    ]
    console.print(
        ex.table_of(
            lines,
            ex.columns_of(
                "structure; n=n_samples:,; roots; regression; runs=n_runs:d",
                "skeleton F1=skeleton_f1+:.3f; arc F1=arc_f1+:.3f",
                "false=n_false+:.1f; missing=n_missing+:.1f",
                "processor s=processor_seconds:.0f",
            ),
            "means over runs",
        )
    )
    return {"means": lines}


MEANS = ("skeleton_f1", "arc_f1", "n_false", "n_missing", "processor_seconds")
EXPERIMENT = ex.Experiment(
    "rcit_pc",
    __doc__,
    ("structure", "n_samples", "roots", "regression", "run"),
    jobs,
    columns=ex.columns_of(
        "structure; d=n_variables:d; n=n_samples:,; roots; regression; run:d",
        *(ex.Column(name.removeprefix("n_"), name, ",", none="-") for name in COUNTS),
        "programs=n_compiled:d; seconds:.1f; processor s=processor_seconds:.1f; "
        "arc F1=arc_f1:.2f; skeleton F1=skeleton_f1:.2f; false=n_false:d; missing=n_missing:d",
    ),
    title=f"PC with RCIT, {PERMUTATIONS} permutations, alpha = {ALPHA}, no privacy",
    options=(
        ex.data_option("networks/*.bif"),
        ex.names("--structures", "structures", full=["alarm", "random-15"], quick=["cancer"]),
        ex.names("--roots", "laws of the roots", [*ROOTS], [*ROOTS], ["normal"]),
        ex.names("--regressions", "regressions", [*REGRESSIONS], [*REGRESSIONS], ["chosen"]),
        ex.one_count("--rows", "records", 8_000, 300),
        ex.one_count("--runs", "models", 5, 1),
        ex.max_level(),
    ),
    settings=ex.kept("max_level", alpha=ALPHA, n_permutations=PERMUTATIONS),
    finish=summary,
    width=190,
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
