"""Where the benchmarks' data come from: Bayesian networks, named and random, and random linear
Gaussian models.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import jax
import numpy as np

import jaxcd
from jaxcd import networks
from jaxcd.data import BayesianNetwork
from jaxcd.data.structural import linear_gaussian_sem
from jaxcd.graphs import dag_to_cpdag, random_dag

#: a data set and the true CPDAG, for a seed
Source = Callable[[int], tuple[jaxcd.Dataset, jaxcd.MixedGraph]]
BUILT_IN = ("cancer", "earthquake", "survey", "asia")
FROM_FILE = ("sachs", "child", "alarm")
BIF_ENDINGS = (".bif", ".bif.gz")
#: random linear Gaussian models by name, with their numbers of variables
GAUSSIAN = {f"gaussian-{p}": p for p in (5, 10, 20)}


def load_networks(names: Sequence[str] | None, data: Path | None) -> dict[str, BayesianNetwork]:
    """The named networks, or all: the built-in ones, and those whose file is there (the screen
    names the others).

    A name that ends in .bif or .bif.gz is a file anywhere; its network goes by the file's name
    without the ending.
    """
    loaded = {}
    for name in names or [*BUILT_IN, *FROM_FILE]:
        if name.endswith(BIF_ENDINGS):
            if not Path(name).is_file():
                sys.exit(
                    f"{name}: no such file; give the path of a BIF file, or one of "
                    f"{', '.join((*BUILT_IN, *FROM_FILE))}"
                )
            loaded[Path(name).name.split(".bif")[0]] = networks.read_bif(name)
            continue
        if name in BUILT_IN:
            loaded[name] = networks.load(name)
            continue
        path = None if data is None else Path(data) / "networks" / f"{name}.bif"
        if path is not None and path.is_file():
            loaded[name] = networks.read_bif(path)
        elif names:
            sys.exit(
                f"{name}: no file networks/{name}.bif in the folder {data}; give --data FOLDER or "
                "set JAXCD_DATA"
            )
        else:
            print(
                f"{name} is left out: no networks/{name}.bif; give --data FOLDER or set JAXCD_DATA",
                file=sys.stderr,
            )
    return loaded


def network_source(network: BayesianNetwork, n: int) -> Source:
    """Samples of n rows from a network."""
    return lambda seed: (network.sample(n, key=jax.random.key(seed)), network.cpdag())


def random_network(
    n_columns: int, seed: int, *, levels: tuple[int, int] = (2, 2), expected_degree: float = 2.0
) -> BayesianNetwork:
    """From the fewest to the most levels a column, at most three parents; every row of a table is
    drawn uniformly.
    """
    rng = np.random.default_rng(seed)
    dag = random_dag(n_columns, expected_degree=expected_degree, seed=seed)
    parents = {f"x{j}": tuple(f"x{u}" for u in sorted(dag.predecessors(j))[:3]) for j in dag}
    fewest, most = levels
    drawn = rng.integers(fewest, most + 1, n_columns) if fewest < most else [fewest] * n_columns
    sizes = dict(zip(parents, map(int, drawn), strict=True))
    domain = jaxcd.Domain(
        {name: jaxcd.Categorical(tuple("abcdefgh"[:k])) for name, k in sizes.items()}
    )
    tables = {
        name: rng.dirichlet([1] * sizes[name], [sizes[u] for u in above])
        for name, above in parents.items()
    }
    return BayesianNetwork(f"random, {n_columns}", domain, parents, tables)


def gaussian_source(n_variables: int, n: int) -> Source:
    """Samples of n rows, each from its own random linear Gaussian model: expected degree 2,
    |weights| in [0.5, 1.5].
    """

    def source(seed: int) -> tuple[jaxcd.Dataset, jaxcd.MixedGraph]:
        dag = random_dag(n_variables, expected_degree=2.0, seed=seed)
        named = {node: f"x{node}" for node in dag}
        dag = type(dag)([(named[a], named[b]) for a, b in dag.edges]) if dag.edges else dag
        for name in named.values():
            dag.add_node(name)
        model_key, data_key = jax.random.split(jax.random.key(seed))
        data = linear_gaussian_sem(dag, key=model_key).sample(n, key=data_key)
        return data, dag_to_cpdag(jaxcd.MixedGraph.from_dag(dag))

    return source
