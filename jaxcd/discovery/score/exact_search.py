r"""The best DAG of all, by dynamic programming over subsets of variables.

Every DAG has a sink.  With B_v(S) the best local score of v with parents in S, the best score of a
DAG on S is

    F(S) = max_{v in S} F(S \ v) + B_v(S \ v),    F({}) = 0,

and taking the sinks off one after the other gives the DAG.  Time and memory grow as d 2^d: up to
about 20 variables.

Source:
    Koivisto and Sood 2004; Silander and Myllymaki 2006.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jaxcd.checks import a_type
from jaxcd.discovery.result import Step, StepProgress, teller
from jaxcd.discovery.score.limits import Limits
from jaxcd.errors import OptionError
from jaxcd.graphs import Knowledge
from jaxcd.scores import FamilyTable, LocalScore
from jaxcd.scores.base import first_best, tie

__all__ = ["exact_search"]

_MAX_VARIABLES = 22


def exact_search(
    score: LocalScore, *, knowledge: Knowledge | None = None, progress: StepProgress = False
) -> np.ndarray:
    """The DAG of the highest score among all whose families are in the score's tables, and that fit
    what is known.

    Args:
        score: a sum over nodes; its ``families`` are the parent sets that are considered.
        knowledge: what is known before; no sink of a subset has a node of a later tier in it.
        progress: True prints a line for each column whose families are scored, and for each size of
            subsets; a function is called with each :class:`jaxcd.discovery.Step`.

    Returns:
        bool adjacency (d, d); where several DAGs share the highest score, one of them, always the
        same.

    Raises:
        OptionError: the score is no LocalScore, or has more than 22 variables; or the knowledge
            names others.
    """
    if not isinstance(score, LocalScore):
        raise OptionError(
            f"score: {a_type(score)} is no sum over nodes; use a LocalScore such as BICScore"
        )
    tell = teller(progress)
    d = len(score.names)
    if d > _MAX_VARIABLES:
        raise OptionError(
            f"score: {d} variables are too many for an exact search, which needs memory for 2^{d} "
            "subsets; "
            f"use jaxcd.ges or jaxcd.discovery.ordering_search above {_MAX_VARIABLES}"
        )
    limits = Limits.of(knowledge, score.names)
    score = limits.within(score)
    tables = []
    for v in range(d):
        tell(Step("families: column", (v, d)))
        tables.append(score.table(v))
    # A score that is no number says nothing for its family.
    tables = [replace(t, scores=np.where(np.isnan(t.scores), -np.inf, t.scores)) for t in tables]
    gain = tie(sum(float(np.max(table.scores)) for table in tables))
    best = np.full(1 << d, -np.inf)
    best[0] = 0.0
    sink = np.zeros(1 << d, dtype=np.int8)
    family = [_best_within(table, d) for table in tables]
    for size, subsets in enumerate(_by_size(d)[1:]):
        tell(Step("sets of columns: size", (size, d)))
        for v in range(d):
            with_v = subsets[((subsets >> v) & 1 == 1) & ((subsets & limits.later[v]) == 0)]
            rest = with_v ^ (1 << v)
            value = best[rest] + family[v][_without_bit(rest, v)]
            better = value > best[with_v] + gain
            improved = with_v[better]
            best[improved], sink[improved] = value[better], v
    return _read_back(tables, sink, d)


def _by_size(d: int) -> list[np.ndarray]:
    """The subsets of d variables as bit masks, int64, grouped by size."""
    size = np.zeros(1, dtype=np.int8)
    for _ in range(d):
        size = np.concatenate([size, size + 1])
    order = np.argsort(size, kind="stable").astype(np.int64)
    return np.split(order, np.cumsum(np.bincount(size, minlength=d + 1))[:-1])


def _without_bit(masks: np.ndarray, v: int) -> np.ndarray:
    """Masks over the other d - 1 variables: bit v is taken out and the higher ones move down."""
    low = masks & ((1 << v) - 1)
    return low | ((masks >> (v + 1)) << v)


def _masks(table: FamilyTable) -> np.ndarray:
    """The families as bits, int64 (F,)."""
    return np.array(
        [sum(1 << parent for parent in family) for family in table.families], dtype=np.int64
    )


def _best_within(table: FamilyTable, d: int) -> np.ndarray:
    """B_v(S) for all S of the other variables, float64 (2^(d-1),): the best score of a family
    inside S.
    """
    best = np.full(1 << (d - 1), -np.inf)
    np.maximum.at(best, _without_bit(_masks(table), table.node), table.scores)
    for bit in range(d - 1):
        pairs = best.reshape(-1, 2, 1 << bit)  # [:, 0]: without the bit, [:, 1]: with it
        np.maximum(pairs[:, 1], pairs[:, 0], out=pairs[:, 1])
    return best


def _read_back(tables: list[FamilyTable], sink: np.ndarray, d: int) -> np.ndarray:
    adjacency = np.zeros((d, d), dtype=bool)
    left = (1 << d) - 1
    while left:
        v = int(sink[left])
        if not (left >> v) & 1:  # no score of these is finite: any order is as good
            v = left.bit_length() - 1
        left ^= 1 << v
        table = tables[v]
        allowed = np.where(_masks(table) & ~left, -np.inf, table.scores)
        adjacency[list(table.families[first_best(allowed)]), v] = True
    return adjacency
