"""The whole of PC with RCIT, without privacy: time, and the work that it is made of.

``python -m benchmarks.rcit_pc [--quick] [--data FOLDER] [--networks NAME ...] [--rows N] [--runs R]
[--max-level L] [--out FILE]``

Data: nonlinear models (``jaxcd.data.structural.nonlinear_sem``) on the structure of Alarm (37
variables), n = 8,000; RCIT with 100 permutations, alpha = 0.05, no limit on conditioning sets.
Printed: numbers of tests, of residuals (a target given a set, shared by its tests) and of
factorisations (a set, shared by its targets), programs compiled, seconds with compilation and
processor seconds (summed over threads: what the run needs where other programs share the machine),
and F1 of arcs and skeleton against the true CPDAG.  Run r has model r and data set r; later runs
compile what the first did not.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator
from typing import Any

import jax

import jaxcd
from benchmarks import experiment as ex
from benchmarks.sources import load_networks
from jaxcd.data import structural

ALPHA = 0.05
PERMUTATIONS = 100


def measure(
    network: jaxcd.data.BayesianNetwork, n: int, run: int, max_level: int | None
) -> dict[str, Any]:
    """One model, one data set, one search.  levels: (level, pairs asked, pairs separated, seconds
    since the start).
    """
    model_key, sample_key, test_key = jax.random.split(ex.key(40_000, run), 3)
    model = structural.nonlinear_sem(network.dag, key=model_key)
    data = model.sample(n, key=sample_key)
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

    with ex.Clock() as clock:
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
    return {
        "n_variables": len(network.names),
        **{name: result.info.get(name) for name in COUNTS},
        "n_compiled": compiled.n,
        "seconds": clock.seconds,
        "processor_seconds": clock.processor_seconds,
        "levels": levels,
        **{name: values[0] for name, values in found.items()},
    }


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """One row a run."""
    for name, network in load_networks(chosen.networks, chosen.data).items():
        for run in range(chosen.runs):
            print(f"{name}, {len(network.names)} variables, {chosen.rows:,} rows, run {run}")
            yield (name, chosen.rows, run), measure, network, chosen.rows, run, chosen.max_level


COUNTS = ("n_tests", "n_residuals", "n_factorisations")
EXPERIMENT = ex.Experiment(
    "rcit_pc",
    __doc__,
    ("structure", "n_samples", "run"),
    jobs,
    columns=ex.columns_of(
        "structure; d=n_variables:d; n=n_samples:,; run:d",
        *(ex.Column(name.removeprefix("n_"), name, ",", none="-") for name in COUNTS),
        "programs=n_compiled:d; seconds:.1f; processor s=processor_seconds:.1f; "
        "arc F1=arc_f1:.2f; skeleton F1=skeleton_f1:.2f",
    ),
    title=f"PC with RCIT, {PERMUTATIONS} permutations, alpha = {ALPHA}, no privacy",
    options=(
        ex.data_option("networks/*.bif"),
        ex.names("--networks", "structures", full=["alarm"], quick=["cancer"]),
        ex.one_count("--rows", "records", 8_000, 300),
        ex.one_count("--runs", "models", 1),
        ex.max_level(),
    ),
    settings=ex.kept("max_level", alpha=ALPHA, n_permutations=PERMUTATIONS),
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
