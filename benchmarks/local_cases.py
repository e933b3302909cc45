"""Data and searches of :mod:`benchmarks.local_multi`.

Ranges of bins must be public.  Sachs: the instrument's scale of 1 to 10^4 on a log10 axis.  Human
Stature: 50 to 85 inches, without gender, as in the study of Binkyte et al. 2024.  Random linear
Gaussian models: the range of an independent sample of the same model, which stands for what is
known before.  ``synth5`` and ``synth10`` have the study's sizes, 50,000 records in 5 bins and 5,000
records in 10; its models were not at hand, so they are random ones of five and ten variables.
"""

from __future__ import annotations

import csv
import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import networkx as nx
import numpy as np

import jaxcd
from benchmarks.local_mechanisms import as_numbers
from jaxcd import local
from jaxcd.data.structural import linear_gaussian_sem
from jaxcd.discovery import dag_to_pag, fci
from jaxcd.discovery.score.ges import ges
from jaxcd.discovery.score.mmhc import mmhc
from jaxcd.discovery.score.order_mcmc import sample_orders
from jaxcd.discovery.score.scored import exact_search
from jaxcd.graphs import dag_to_cpdag, random_dag
from jaxcd.scores import BIC, BDeu
from jaxcd.scores.bge import BGeScore

ALPHA = 0.05
#: Of tests on tables, which grow tenfold with every column that is conditioned on.
TABLE_LEVEL = 2
PILOT_SHIFT = 1_000_000


@dataclass(frozen=True)
class Case:
    """name: in the table.  draw: data of a run, discrete with declared levels, and its true DAG."""

    name: str
    draw: Callable[[int], tuple[jaxcd.Dataset, nx.DiGraph]]


def _table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _from_file(
    path: Path,
    edges: Path,
    names: Sequence[str],
    read: Callable[[str, str], object],
    domain: jaxcd.Domain,
    bins: int,
) -> Case:
    rows = [[read(name, row[name]) for name in names] for row in _table(path)]
    data = local.discretise_columns(
        jaxcd.Dataset.from_array(rows, domain=domain, clip=True), bins=bins
    )
    dag: nx.DiGraph = nx.DiGraph()
    dag.add_nodes_from(names)
    arcs = [(row["cause"], row["effect"]) for row in _table(edges)]
    dag.add_edges_from(arc for arc in arcs if set(arc) <= set(names))
    return Case(path.parent.name, lambda seed: (data, dag))


def sachs(folder: Path, bins: int) -> Case:
    """The 902 cells of one condition, log10, against the consensus of 17 arcs; the data is the same
    in every run.
    """
    path = folder / "sachs" / "sachs_cd3cd28_icam2_902.csv"
    names = list(_table(path)[0])
    domain = jaxcd.Domain({name: jaxcd.Numeric(0.0, 4.0) for name in names})
    edges = folder / "sachs" / "sachs_edges_17_bnlearn.csv"
    return _from_file(
        path, edges, names, lambda _, cell: float(np.log10(float(cell))), domain, bins
    )


def stature(folder: Path, bins: int) -> Case:
    """Galton's 898 adult children: father, mother -> height; the data is the same in every run."""
    names = ["father", "mother", "height"]
    columns = {name: jaxcd.Numeric(50.0, 85.0) for name in names}
    path, edges = (
        folder / "galton" / "galton_stature_898.csv",
        folder / "galton" / "galton_edges.csv",
    )
    return _from_file(path, edges, names, lambda _, cell: float(cell), jaxcd.Domain(columns), bins)


def random_model(n_variables: int, n: int, bins: int, name: str | None = None) -> Case:
    """A random linear Gaussian model for every run: expected degree 2, |weights| in [0.5, 1.5]."""

    def draw(seed: int) -> tuple[jaxcd.Dataset, nx.DiGraph]:
        dag = random_dag(n_variables, expected_degree=2.0, seed=seed)
        model_key, data_key = jax.random.split(jax.random.key(seed))
        model = linear_gaussian_sem(dag, key=model_key)
        sample, pilot = (
            model.sample(n, key=key) for key in (data_key, jax.random.key(seed + PILOT_SHIFT))
        )
        bounds = {
            name: jaxcd.Numeric(float(pilot.values(name).min()), float(pilot.values(name).max()))
            for name in sample.names
        }
        rows = np.column_stack([sample.values(name) for name in sample.names])
        data = jaxcd.Dataset.from_array(rows, domain=jaxcd.Domain(bounds), clip=True)
        return local.discretise_columns(data, bins=bins), dag

    return Case(name or f"random-{n_variables}", draw)


#: variables, records and bins of the study's synthetic data
SYNTHETIC = {"synth5": (5, 50_000, 5), "synth10": (10, 5_000, 10)}
CASES = ("sachs", "galton", *SYNTHETIC, "random-5", "random-10")


def load(names: Sequence[str], folder: Path | None, n: int, bins: int) -> list[Case]:
    """The named cases; those whose files are not there are left out, and a line says so."""
    found = []
    for name in names:
        if name in SYNTHETIC:
            found.append(random_model(*SYNTHETIC[name], name))
        elif name.startswith("random-"):
            found.append(random_model(int(name.split("-")[1]), n, bins))
        elif folder is not None and (Path(folder) / name).is_dir():
            found.append({"sachs": sachs, "galton": stature}[name](Path(folder), bins))
        else:
            print(f"{name} is left out: no folder {name}; give --data FOLDER or set JAXCD_DATA")
    return found


class Truth(enum.Enum):
    """What a search aims at."""

    CPDAG = "cpdag"
    PAG = "pag"

    def of(self, dag: nx.DiGraph) -> jaxcd.MixedGraph:
        """The graph that perfect data would give."""
        return (
            dag_to_pag(dag) if self is Truth.PAG else dag_to_cpdag(jaxcd.MixedGraph.from_dag(dag))
        )


@dataclass(frozen=True)
class Search:
    """run: from data and a seed of public randomness to a graph.  numeric: whether it takes level
    codes as numbers.
    """

    run: Callable[[jaxcd.Dataset, int], jaxcd.MixedGraph]
    numeric: bool
    truth: Truth = Truth.CPDAG

    def graph(self, data: jaxcd.Dataset, seed: int) -> jaxcd.MixedGraph:
        """The graph found."""
        return self.run(as_numbers(data) if self.numeric else data, seed)


def _by_tests(
    algorithm: Callable[..., jaxcd.DiscoveryResult],
    test: jaxcd.citests.CITest,
    max_level: int | None = None,
    alpha: float = ALPHA,
) -> Callable[..., jaxcd.MixedGraph]:
    return lambda data, seed: (
        algorithm(
            data,
            test=test,
            decider=jaxcd.Threshold(alpha=alpha),
            budget=jaxcd.NO_PRIVACY,
            key=None,
            max_level=max_level,
        ).graph
    )


def _by_score(penalty: float = 1.0, **options: Any) -> Callable[..., jaxcd.MixedGraph]:
    return lambda data, seed: (
        ges(data, score=BIC(penalty), budget=jaxcd.NO_PRIVACY, **options).graph
    )


SEARCHES: Mapping[str, Search] = {
    "PC, Fisher z": Search(_by_tests(jaxcd.pc, jaxcd.FisherZ()), True),
    "PC, chi-square": Search(_by_tests(jaxcd.pc, jaxcd.ChiSquare(), TABLE_LEVEL), False),
    "FCI, Fisher z": Search(_by_tests(fci, jaxcd.FisherZ()), True, Truth.PAG),
    "FCI, chi-square": Search(_by_tests(fci, jaxcd.ChiSquare(), TABLE_LEVEL), False, Truth.PAG),
    "GES, Gaussian BIC": Search(_by_score(), True),
    "GES, discrete BIC": Search(_by_score(max_parents=3), False),
    "order MCMC, BGe": Search(
        lambda data, seed: (
            sample_orders(
                BGeScore.of_data(data), n_steps=1_000, burn_in=300, n_chains=1, seed=seed
            ).cpdag
        ),
        True,
    ),
    "MMHC, Fisher z": Search(
        lambda data, seed: (
            mmhc(data, score=BIC(), budget=jaxcd.NO_PRIVACY, max_conditioning=3).graph
        ),
        True,
    ),
    "MMHC, BDe": Search(
        lambda data, seed: (
            mmhc(
                data, score=BDeu(), budget=jaxcd.NO_PRIVACY, max_conditioning=2, max_parents=3
            ).graph
        ),
        False,
    ),
    "exact, Gaussian BIC": Search(
        lambda data, seed: exact_search(data, budget=jaxcd.NO_PRIVACY, max_parents=3).graph, True
    ),
    # The same again at other levels and penalties.
    **{
        f"PC, Fisher z, alpha {alpha:g}": Search(
            _by_tests(jaxcd.pc, jaxcd.FisherZ(), alpha=alpha), True
        )
        for alpha in (0.01, 0.1)
    },
    **{
        f"GES, Gaussian BIC, penalty {penalty:g}": Search(_by_score(penalty), True)
        for penalty in (0.5, 2.0)
    },
}
