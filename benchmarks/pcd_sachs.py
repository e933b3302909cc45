"""Real data: the flow cytometry of Sachs et al., PCD as published and PC with RCIT without privacy.

``python -m benchmarks.pcd_sachs [--quick] [--data FOLDER] [--runs R] [--epsilon E ...]
[--methods WORD ...] [--scale log|raw] [--max-level L] [--out FILE]``

The 853 cells of the condition without a targeted perturbation, 11 proteins, against the CPDAG of
the 17 arcs that Sachs et al. learnt (a consensus, not a truth).  Runs differ in permutations and
noise, not in data.  Values have heavy right tails, so their logarithm is taken unless
``--scale raw``.  The Kendall curve: Priv-PC as published, on four equal bins of the instrument's
scale (1 to 10^4, on the axis that ``--scale`` says), its epsilon that of a round.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import jax
import networkx as nx
import numpy as np
import pandas as pd

import jaxcd
from benchmarks import experiment as ex
from benchmarks.pcd_figure2 import (
    COLUMNS,
    EPSILONS,
    KEY,
    SETTINGS,
    Results,
    measure,
    rows_of,
    searched,
)
from jaxcd import local, published
from jaxcd.graphs import dag_to_cpdag

KENDALL = "Priv-PC, published"
BINS = 4
DATA = Path("sachs", "sachs_cd3cd28_853.csv")
EDGES = Path("sachs", "sachs_edges_17_bnlearn.csv")


def load(folder: Path, *, scale: str, n_rows: int | None) -> tuple[jaxcd.Dataset, jaxcd.MixedGraph]:
    """The cells (the first ``n_rows``), and the CPDAG of the 17 arcs, in the order of the
    columns.
    """
    frame = pd.read_csv(folder / DATA).astype(float).iloc[:n_rows]
    if scale == "log":
        frame = np.log(frame)  # every value is at least 1
    dag = nx.DiGraph()
    dag.add_nodes_from(frame.columns)
    dag.add_edges_from(pd.read_csv(folder / EDGES).itertuples(index=False, name=None))
    domain = jaxcd.Domain({name: jaxcd.Numeric() for name in frame.columns})
    return jaxcd.Dataset.from_frame(frame, domain=domain), dag_to_cpdag(dag)


def kendall(
    epsilons: Sequence[float], max_level: int, data: jaxcd.Dataset, key: jax.Array
) -> Results:
    """Priv-PC as published at every price, and its test without noise."""
    plain = searched(published.ConditionalTau(), max_level, data, key, stable=False)
    noisy = {
        epsilon: published.priv_pc(data, epsilon=epsilon, key=key, max_level=max_level)
        for epsilon in epsilons
    }
    return {None: plain, **noisy}


def in_bins(data: jaxcd.Dataset, *, scale: str) -> jaxcd.Dataset:
    """Four equal bins of the instrument's scale."""
    ends = (0.0, float(np.log(1e4))) if scale == "log" else (1.0, 1e4)
    bounded = jaxcd.Domain({name: jaxcd.Numeric(*ends) for name in data.names})
    rows = np.column_stack([data.values(name) for name in data.names])
    return local.discretise_columns(
        jaxcd.Dataset.from_array(rows, domain=bounded, clip=True), bins=BINS
    )


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """The same data and truth in every run."""
    sample, truth = load(Path(chosen.data), scale=chosen.scale, n_rows=chosen.rows)
    data, truths = [sample] * chosen.runs, [truth] * chosen.runs
    yield from rows_of("sachs data", data, truths, chosen, 2)
    level = 2 if chosen.max_level is None else chosen.max_level
    cut = [in_bins(sample, scale=chosen.scale)] * chosen.runs
    values = "sachs data", sample.n_samples, KENDALL, level, chosen.runs
    yield values, measure, partial(kendall, chosen.epsilon, level), cut, truths


def missing(chosen: Namespace) -> str | None:
    """What to do where there are no cells."""
    lacking = [str(path) for path in (DATA, EDGES) if not (chosen.data / path).is_file()]
    if not lacking:
        return None
    return f"{' and '.join(lacking)} not found in the folder {chosen.data}; give --data FOLDER"


EXPERIMENT = ex.Experiment(
    "pcd_sachs",
    __doc__,
    KEY,
    jobs,
    columns=COLUMNS,
    title=lambda row: f"Sachs, {row.n_samples} cells: means of {row.n_runs} runs",
    options=(
        ex.data_option("sachs/*.csv", needed="no cells: give --data FOLDER or set JAXCD_DATA"),
        ex.one_count("--rows", "the first cells only", quick=300),
        ex.one_count("--runs", "runs of each row", 10, 2),
        ex.numbers("--epsilon", "of one noisy answer", EPSILONS, (1.0,)),
        ex.names("--methods", "words of labels, else all"),
        ex.max_level(quick=1),
        ex.Option("--scale", "of the values", "log", choices=("log", "raw")),
    ),
    settings=ex.kept("runs", "scale", **SETTINGS),
    check=missing,
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
