"""Prints, as JSON, what the package answers where only rounding could decide: constants, copies,
ties, almost singular matrices.

Run under several processor settings by ``test_processors.py``: every line must be the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jax
import networkx as nx
import numpy as np

import jaxcd
from jaxcd.discovery.score.ordering_search import ordering_search

KEY = jax.random.key(0)
ANSWERS: dict[str, Callable[[], Any]] = {}


def answer(function: Callable[[], Any]) -> Callable[[], Any]:
    ANSWERS[function.__name__] = function
    return function


def numeric(columns: np.ndarray) -> jaxcd.Dataset:
    names = [f"x{j}" for j in range(columns.shape[1])]
    return jaxcd.Dataset.from_array(
        columns, names=names, domain=jaxcd.Domain(dict.fromkeys(names, jaxcd.Numeric()))
    )


def discrete(codes: np.ndarray) -> jaxcd.Dataset:
    domain = jaxcd.Domain(
        {f"v{j}": jaxcd.Ordinal(tuple(range(int(c.max()) + 1))) for j, c in enumerate(codes.T)}
    )
    return jaxcd.Dataset.from_codes(codes.astype(np.int32), domain=domain)


def degenerate(n: int) -> np.ndarray:
    """Normal, constant, a copy, a copy but for rounding, the sum of two others, two values, large
    mean.
    """
    rng = np.random.default_rng(n)
    x, y = rng.normal(size=(2, n))
    constant = np.full(n, 0.1 * n)
    return np.column_stack(
        [x, constant, x, (x + 1e6) - 1e6, x + y, np.sign(y), 1e9 + np.round(y, 3)]
    )


def tests_of(test: Any, sizes: tuple[int, ...], given: list[tuple[str, ...]]) -> list:
    found = []
    for n in sizes:
        data = numeric(degenerate(n))
        for a in range(7):
            for b in range(a):
                for z in given:
                    if not {f"x{a}", f"x{b}"} & set(z):
                        got = jaxcd.ci_test(
                            data,
                            f"x{a}",
                            f"x{b}",
                            given=z,
                            test=test,
                            budget=jaxcd.NO_PRIVACY,
                            key=KEY,
                        )
                        found.append([n, a, b, *z, bool(got.independent)])
    return found


@answer
def hsic() -> list:
    return tests_of(jaxcd.HSIC(n_permutations=39), (7, 60, 1001), [()])


@answer
def rcit() -> list:
    return tests_of(jaxcd.RCIT(n_permutations=39, rank=50), (60,), [("x1",), ("x2",), ("x4", "x5")])


@answer
def fisher_z() -> list:
    return tests_of(jaxcd.FisherZ(), (60, 1001), [(), ("x1",), ("x2", "x3"), ("x0", "x2", "x4")])


@answer
def pvalues_of_few_levels() -> list:
    """Permuted statistics tie with the observed one: which of them count is not for rounding to
    say.
    """
    found = []
    for seed in range(12):
        codes = np.random.default_rng(seed).integers(0, 2, (20, 2)).astype(float)
        got = jaxcd.ci_test(
            numeric(codes),
            "x0",
            "x1",
            test=jaxcd.HSIC(n_permutations=99),
            budget=jaxcd.NO_PRIVACY,
            key=KEY,
        )
        found.append(round(got.pvalue * 100))
    return found


def copies(n: int) -> np.ndarray:
    """A collider, with a copy of each of its parents and a constant: many graphs share the highest
    score.
    """
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 2, (2, n))
    c = np.where(rng.random(n) < 0.8, a & b, rng.integers(0, 2, n))
    return np.column_stack([a, b, c, a, b, np.zeros(n, dtype=int)])


@answer
def graphs_of_copies() -> dict:
    data, none = discrete(copies(500)), jaxcd.NO_PRIVACY
    searches = {
        "exact": lambda: jaxcd.exact_search(data, budget=none, max_parents=3),
        "ges": lambda: jaxcd.ges(data, budget=none),
        "ges by BDeu": lambda: jaxcd.ges(data, score=jaxcd.BDeu(), budget=none),
        "mmhc": lambda: jaxcd.mmhc(data, budget=none, key=None),
        "pc": lambda: jaxcd.pc(
            data, test=jaxcd.GTest(), decider=jaxcd.Threshold(), budget=none, key=None
        ),
        "mcmc": lambda: jaxcd.order_mcmc(
            data, budget=none, key=KEY, n_steps=50, burn_in=20, n_chains=1, max_parents=2
        ),
    }
    return {
        name: [str(edge) for edge in search().graph.edges()] for name, search in searches.items()
    }


@answer
def ordering_of_copies() -> list:
    score = jaxcd.BIC().prepare(discrete(copies(500)), max_parents=3)
    return ordering_search(score, restarts=5, rounds=3).adjacency.astype(int).tolist()


@answer
def numeric_graphs() -> dict:
    data, none = numeric(degenerate(500)), jaxcd.NO_PRIVACY
    sold = jaxcd.release(data, jaxcd.SecondMoments(), budget=none)
    return {
        "ges": [str(edge) for edge in jaxcd.ges(data, budget=none).graph.edges()],
        "exact": [str(edge) for edge in jaxcd.exact_search(data, budget=none).graph.edges()],
        "sold": [str(edge) for edge in jaxcd.search(sold).graph.edges()],
        "pc": [
            str(edge)
            for edge in jaxcd.pc(
                data,
                test=jaxcd.FisherZ(),
                decider=jaxcd.Threshold(),
                budget=none,
                key=None,
                max_level=2,
            ).graph.edges()
        ],
    }


@answer
def pairs() -> dict:
    """Mirrored, symmetric and nearly constant pairs."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    cases = {
        "symmetric": (np.arange(50.0), np.arange(50.0)),
        "far": (1e12 + np.round(x, 2), x),
        "two values": (np.sign(x), rng.normal(size=200)),
    }
    none, found = jaxcd.NO_PRIVACY, {}
    for name, (first, second) in cases.items():
        found[name] = [
            jaxcd.anm(first, second, budget=none, key=KEY).direction.value,
            jaxcd.reci(first, second, budget=none).direction.value,
            jaxcd.cds(first, second, budget=none).direction.value,
            jaxcd.igci(first, second, budget=none).direction.value,
        ]
    return found


@answer
def releases() -> dict:
    """Searches on releases with simulated noise: the noise is the same, so the graphs are."""
    budget, found = jaxcd.Budget(2.0, 1e-3), {}
    codes = discrete(copies(2000))
    numbers = numeric(degenerate(2000)[:, [0, 1, 2, 4, 5]])
    rng = np.random.default_rng(5)  # many cells, most of them empty, and a column that is a copy
    first = rng.integers(0, 12, 1000)
    chain = np.cumsum([first, *rng.integers(0, 3, (2, 1000))], axis=0) % 12
    for kind, data in (
        (jaxcd.LogLinear(), codes),
        (jaxcd.LogLinear(), discrete(np.column_stack([*chain, chain[1]]))),
        (jaxcd.Histogram(), codes),
        (jaxcd.Marginals(), codes),
        (jaxcd.SecondMoments(), numbers),
        (jaxcd.Tetrachoric(selected=6), numbers),
        (jaxcd.Features(), numbers),
        (jaxcd.Discretised(), numbers),
    ):
        bought = jaxcd.release(data, kind, budget=budget, noise=jaxcd.SimulatedNoise(KEY))
        edges = [str(edge) for edge in jaxcd.search(bought).graph.edges()]
        found[f"{kind.word}, {len(found)}"] = edges
    return found


@answer
def after_the_graph() -> dict:
    """Effects, falsification, GFCI and one release of two owners, of copies and a constant."""
    data, noise = discrete(copies(2000)), jaxcd.SimulatedNoise(KEY)
    sold = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(8.0), noise=noise)
    chain = nx.DiGraph(list(zip(data.names, data.names[1:], strict=False)))
    fallen = jaxcd.falsify(sold, chain, n_permutations=10)
    sites = {name: discrete(copies(n)) for name, n in (("a", 400), ("b", 600))}
    budget = jaxcd.Budget(2.0, 1e-3)
    found = jaxcd.effect(sold, treatment="v0", outcome="v2", n_draws=2)
    # Numbers to six digits, beyond which kernels may round; what they decide must be equal.
    effect = [None if x is None else round(float(x), 6) for x in (found.low, found.high)]
    together = jaxcd.federate(sites, jaxcd.Marginals(), budget=budget, noise=noise)
    rows = data.on(jax.sharding.Mesh(np.array(jax.devices()[:1]), ("rows",)))
    placed = jaxcd.release(rows, jaxcd.Marginals(), budget=budget, noise=noise)
    return {
        "effect": effect,
        "falsify": [[x.x, x.y, *x.given] for x in fallen.violations],
        "gfci": [str(edge) for edge in jaxcd.gfci(sold, key=KEY).graph.edges()],
        "federate": [str(edge) for edge in jaxcd.search(together).graph.edges()],
        "mesh": [str(edge) for edge in jaxcd.search(placed).graph.edges()],
    }


@answer
def stratified_tau() -> list:
    """Of columns with bounds, which it cuts; the last is beyond them."""
    found = []
    for n in (60, 1001):
        columns = degenerate(n)
        names = [f"x{j}" for j in range(7)]
        domain = jaxcd.Domain(dict.fromkeys(names, jaxcd.Numeric(-8.0, 8.0)))
        data = jaxcd.Dataset.from_array(columns, names=names, domain=domain)
        for a, b in ((0, 2), (0, 3), (0, 5), (4, 0), (6, 5)):
            for given in (("x1",), ("x4",) if a != 4 else ("x5",)):
                got = jaxcd.ci_test(
                    data,
                    names[a],
                    names[b],
                    given=given,
                    test=jaxcd.StratifiedTau(),
                    budget=jaxcd.NO_PRIVACY,
                    key=KEY,
                )
                found.append([n, a, b, *given, bool(got.independent)])
    return found


if __name__ == "__main__":
    print(json.dumps({name: function() for name, function in ANSWERS.items()}))
