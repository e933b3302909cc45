"""What is found by trying everything: all DAGs on a few nodes, what they say of a score, and the
definitions of separation.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import defaultdict

import networkx as nx
import numpy as np
from scipy.special import logsumexp

from jaxcd.discovery.score.order_families import linear_extensions
from jaxcd.graphs import Mark, MixedGraph
from jaxcd.scores import GraphScore, LocalScore
from jaxcd.scores.equivalence import equivalence_keys


@functools.cache
def all_dags(d: int) -> np.ndarray:
    pairs = list(itertools.combinations(range(d), 2))
    found = []
    for choice in itertools.product((0, 1, 2), repeat=len(pairs)):
        graph = np.zeros((d, d), dtype=bool)
        for (i, j), kind in zip(pairs, choice, strict=True):
            graph[i, j], graph[j, i] = kind == 1, kind == 2
        if nx.is_directed_acyclic_graph(nx.from_numpy_array(graph, create_using=nx.DiGraph)):
            found.append(graph)
    return np.array(found)


class DrawnScore(LocalScore):
    """Independent normal scores of all families: no structure to help a search, not
    score-equivalent, so the best DAG is one DAG.  With so many drawn partners of a node, or these
    alone as its parents.
    """

    def __init__(
        self,
        d: int,
        *,
        seed: int,
        max_parents: int = 3,
        partners: int | None = None,
        among: dict[int, tuple[int, ...]] | None = None,
    ) -> None:
        rng = np.random.default_rng(seed)
        self._d, self._most = d, max_parents
        self._among = among or {v: tuple(u for u in range(d) if u != v) for v in range(d)}
        if partners:
            self._among = {
                v: tuple(sorted(rng.permutation(others)[:partners].tolist()))
                for v, others in self._among.items()
            }
        self._scores = {
            (v, family): float(rng.normal())
            for v in range(d)
            for size in range(max_parents + 1)
            for family in itertools.combinations(self._among[v], size)
        }

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"v{j}" for j in range(self._d))

    @property
    def max_parents(self) -> int:
        return self._most

    def candidates(self, node: int) -> tuple[int, ...]:
        return self._among[node]

    def local(self, node: int, parents: tuple[int, ...]) -> float:
        return self._scores[node, parents]


def over_dags(score: LocalScore, *, uniform: bool) -> tuple[np.ndarray, np.ndarray]:
    """Exact arc probabilities and the best DAG; extensions are counted by networkx."""
    dags, totals, logs = all_dags(len(score.names)), [], []
    for dag in dags:
        graph = nx.from_numpy_array(dag, create_using=nx.DiGraph)
        extensions = sum(1 for _ in nx.all_topological_sorts(graph))
        assert extensions == linear_extensions(dag)
        totals.append(score.total(dag))
        logs.append(totals[-1] + (0.0 if uniform else math.log(extensions)))
    shares = np.exp(np.array(logs) - logsumexp(logs))
    return np.einsum("g,gij->ij", shares, dags.astype(float)), dags[int(np.argmax(totals))]


def class_totals(score: GraphScore, dags: np.ndarray, *, tolerance: float) -> list[float]:
    """One total of each equivalence class of these DAGs: those of its members are the same."""
    classes: dict[bytes, list[float]] = defaultdict(list)
    for key, total in zip(equivalence_keys(dags), score.totals(dags), strict=True):
        classes[key].append(float(total))
    assert max(np.ptp(totals) for totals in classes.values()) < tolerance
    return [totals[0] for totals in classes.values()]


def separated_by_paths(graph: MixedGraph, x: int, y: int, given: set[int]) -> bool:
    """The definition, over all simple paths: one is active if each of its non-colliders is outside
    what is given, and each of its colliders is given or has a descendant that is.
    """
    directed = nx.from_numpy_array(graph.directed, create_using=nx.DiGraph)
    opened = given | {a for z in given for a in nx.ancestors(directed, z)}
    for path in nx.all_simple_paths(nx.from_numpy_array(graph.adjacency), x, y):
        active = True
        for a, b, c in zip(path, path[1:], path[2:], strict=False):
            collider = graph.marks[a, b] == Mark.ARROW and graph.marks[c, b] == Mark.ARROW
            active &= (b in opened) if collider else (b not in given)
        if active:
            return False
    return True
