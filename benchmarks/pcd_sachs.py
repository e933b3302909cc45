"""Real data: the flow cytometry of Sachs et al., PCD as published and PC with RCIT without privacy.

``python -m benchmarks.pcd_sachs [--quick] [--data FOLDER] [--runs R] [--epsilon E ...] [--scale
log|raw] [--max-level L] [--out FILE]``

The 853 cells of the condition without a targeted perturbation, 11 proteins, against the CPDAG of
the 17 arcs that Sachs et al. learnt (a consensus, not a truth).  Runs differ in permutations and
noise, not in data.  Values have heavy right tails, so their logarithm is taken unless
``--scale raw``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
from rich.console import Console

import jaxcd
from benchmarks import common
from benchmarks.pcd_figure2 import (
    NON_PRIVATE,
    PUBLISHED,
    Row,
    non_private,
    published,
    row_of,
    table_of,
)
from jaxcd.graphs import dag_to_cpdag

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
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


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    options = common.parser("PCD on the Sachs data.", out=common.RESULTS / "pcd_sachs.json")
    common.add_epsilon(options)
    common.add_max_level(options)
    options.add_argument("--scale", choices=("log", "raw"), default="log", help="of the values")
    full = {"rows": None, "epsilon": EPSILONS, "runs": 10, "max_level": None}
    chosen = common.parse(
        options,
        arguments,
        full=full,
        quick={"rows": 300, "epsilon": (1.0,), "runs": 2, "max_level": 1},
    )
    missing = [
        str(path)
        for path in (DATA, EDGES)
        if chosen.data is None or not (Path(chosen.data) / path).is_file()
    ]
    if missing:
        sys.exit(
            f"{' and '.join(missing)} not found in the folder {chosen.data}; give --data FOLDER "
            "or set JAXCD_DATA"
        )
    return chosen


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the benchmark, prints the table and writes JSON."""
    chosen = _options(arguments)
    sample, truth = load(Path(chosen.data), scale=chosen.scale, n_rows=chosen.rows)
    data, truths = [sample] * chosen.runs, [truth] * chosen.runs
    rows: list[Row] = []
    level = 3 if chosen.max_level is None else chosen.max_level
    rows.append(
        row_of(
            "sachs data",
            NON_PRIVATE,
            non_private(level),
            data,
            truths,
            epsilon=None,
            max_level=level,
        )
    )
    level = 2 if chosen.max_level is None else chosen.max_level
    for epsilon in chosen.epsilon:
        run = published(epsilon, level)
        rows.append(
            row_of("sachs data", PUBLISHED, run, data, truths, epsilon=epsilon, max_level=level)
        )
    Console(width=150).print(
        table_of(f"Sachs, {sample.n_samples} cells, {chosen.scale} scale", rows)
    )
    settings = {
        "runs": chosen.runs,
        "scale": chosen.scale,
        "alpha": 0.05,
        "n_permutations": 100,
        "penalty": 1.0,
    }
    results = [asdict(row) for row in rows]
    common.write_json(
        chosen.out, {"environment": common.environment(), "settings": settings, "results": results}
    )


if __name__ == "__main__":
    main()
