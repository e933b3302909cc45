"""How close an estimated graph is to the true one.

Every function is called ``(estimate, truth)`` with two mixed graphs over the same names, in any
order.

>>> from jaxcd.graphs import MixedGraph
>>> truth = MixedGraph.from_edges(["a", "b", "c"], ["a --> b", "c --> b"])
>>> estimate = MixedGraph.from_edges(["a", "b", "c"], ["a --> b", "b --- c"])
>>> skeleton_f1(estimate, truth), shd(estimate, truth)
(F1Score(1.0, precision=1.0, recall=1.0), 1)
>>> orientation_f1(estimate, truth).recall, arc_f1(estimate, truth).precision
(0.5, 0.6666666666666666)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from jaxcd.checks import a_type
from jaxcd.errors import GraphError, OptionError
from jaxcd.graphs.edges import Mark
from jaxcd.graphs.mixed_graph import MixedGraph

__all__ = [
    "F1Score",
    "MarkConfusion",
    "arc_f1",
    "mark_confusion",
    "mark_f1",
    "orientation_f1",
    "shd",
    "skeleton_f1",
    "summary",
]


@final
class F1Score(float):
    """An F1 score: a float, with precision and recall beside it.

    F1 = 2 TP / (n_estimated + n_true), the harmonic mean of precision = TP / n_estimated and
    recall = TP / n_true. If nothing is estimated and nothing is true, all three are 1; any other 0
    / 0 is 0.
    """

    __slots__ = ("_counts",)
    _counts: tuple[int, int, int]

    def __new__(cls, true_positives: int, n_estimated: int, n_true: int) -> F1Score:
        """Makes a score of three counts.

        Args:
            true_positives: Number of items that are both estimated and true.
            n_estimated: Number of estimated items, at least ``true_positives``.
            n_true: Number of true items, at least ``true_positives``.

        Raises:
            OptionError: If the counts do not fit together.
        """
        if not 0 <= true_positives <= min(n_estimated, n_true):
            raise OptionError(
                "counts must satisfy 0 <= true_positives <= n_estimated and n_true, "
                f"got {true_positives}, {n_estimated} and {n_true}"
            )
        total = n_estimated + n_true
        score = super().__new__(cls, 2 * true_positives / total if total else 1.0)
        object.__setattr__(score, "_counts", (int(true_positives), int(n_estimated), int(n_true)))
        return score

    @property
    def true_positives(self) -> int:
        """Number of items that are both estimated and true."""
        return self._counts[0]

    @property
    def n_estimated(self) -> int:
        """Number of estimated items."""
        return self._counts[1]

    @property
    def n_true(self) -> int:
        """Number of true items."""
        return self._counts[2]

    @property
    def precision(self) -> float:
        """Share of the estimated items that are true."""
        return self._share(self.n_estimated)

    @property
    def recall(self) -> float:
        """Share of the true items that are estimated."""
        return self._share(self.n_true)

    def _share(self, count: int) -> float:
        if count:
            return self.true_positives / count
        return 1.0 if self.n_estimated == self.n_true == 0 else 0.0

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"F1Score is frozen; cannot set {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return F1Score, self._counts

    def __repr__(self) -> str:
        return f"F1Score({float(self)!r}, precision={self.precision!r}, recall={self.recall!r})"

    def __str__(self) -> str:
        return repr(float(self))


def skeleton_f1(estimate: MixedGraph, truth: MixedGraph) -> F1Score:
    """F1 over adjacencies: pairs of nodes with an edge of any kind.

    Args:
        estimate: The estimated graph.
        truth: The true graph, over the same names in any order.

    Returns:
        The score; two graphs without edges score 1.

    Raises:
        GraphError: If the graphs have different names.

    Example:
        >>> from jaxcd.graphs import MixedGraph
        >>> from jaxcd.metrics import skeleton_f1
        >>> truth = MixedGraph.from_edges(["a", "b", "c"], ["a --> b", "c --> b"])
        >>> skeleton_f1(MixedGraph.from_edges(["a", "b", "c"], ["a --- b", "b --- c"]), truth)
        F1Score(1.0, precision=1.0, recall=1.0)
    """
    estimated, true = _aligned(estimate, truth)
    return _f1(np.triu(estimated.adjacency), np.triu(true.adjacency))


def orientation_f1(estimate: MixedGraph, truth: MixedGraph) -> F1Score:
    """F1 over directed edges only: pairs (i, j) with i --> j, a tail at i and an arrowhead at j.

    Undirected, bidirected and circle edges are no items: not directing an edge costs recall, never
    precision.

    Args:
        estimate: The estimated graph.
        truth: The true graph (a CPDAG, if the estimate is one), over the same names in any order.

    Returns:
        The score; two graphs without directed edges score 1.

    Raises:
        GraphError: If the graphs have different names.

    Example:
        >>> from jaxcd.graphs import MixedGraph
        >>> from jaxcd.metrics import orientation_f1
        >>> truth = MixedGraph.from_edges(["a", "b", "c"], ["a --> b", "c --> b"])
        >>> found = MixedGraph.from_edges(["a", "b", "c"], ["a --> b", "b --> c"])
        >>> orientation_f1(found, truth)
        F1Score(0.5, precision=0.5, recall=0.5)
    """
    estimated, true = _aligned(estimate, truth)
    return _f1(estimated.directed, true.directed)


def arc_f1(estimate: MixedGraph, truth: MixedGraph) -> F1Score:
    """F1 over arcs, where an edge that leaves the direction open counts as two.

    An edge with an arrowhead at exactly one end is one arc, into the arrowhead; any other edge
    (undirected, bidirected, o-o, --o) is two arcs, one each way.

    Args:
        estimate: The estimated graph.
        truth: The true graph (a CPDAG, if the estimate is one), over the same names in any order.

    Returns:
        The score; two graphs without edges score 1.

    Raises:
        GraphError: If the graphs have different names.

    Source:
        The convention of the experiments of Wang, Pang and Song 2020 (NeurIPS), "Towards practical
        differentially private causal graph discovery" (Priv-PC), extended to circles.

    Example:
        >>> from jaxcd.graphs import MixedGraph
        >>> from jaxcd.metrics import arc_f1
        >>> truth = MixedGraph.from_edges(["a", "b", "c"], ["a --> b", "c --> b"])
        >>> found = MixedGraph.from_edges(["a", "b", "c"], ["a --> b"])
        >>> score = arc_f1(found, truth)
        >>> round(score, 3), score.precision, score.recall
        (0.667, 1.0, 0.5)
    """
    estimated, true = _aligned(estimate, truth)
    return _f1(_arcs(estimated), _arcs(true))


def shd(estimate: MixedGraph, truth: MixedGraph) -> int:
    """Structural Hamming distance: the number of pairs of nodes whose edge (its presence or a mark
    of it) differs.

    Args:
        estimate: The estimated graph.
        truth: The true graph, over the same names in any order.

    Returns:
        An integer in 0..d (d - 1) / 2; 0 exactly if the graphs are equal up to the order of names.

    Raises:
        GraphError: If the graphs have different names.

    Source:
        Tsamardinos, Brown and Aliferis 2006 (Machine Learning 65), for CPDAGs: a wrong direction
        costs 1.

    Example:
        >>> from jaxcd.graphs import MixedGraph
        >>> from jaxcd.metrics import shd
        >>> truth = MixedGraph.from_edges(["a", "b", "c"], ["a --> b", "c --> b"])
        >>> shd(MixedGraph.from_edges(["a", "b", "c"], ["b --> a"]), truth)
        2
    """
    estimated, true = _aligned(estimate, truth)
    differs = estimated.marks != true.marks
    return int(np.count_nonzero(np.triu(differs | differs.T)))


def mark_f1(estimate: MixedGraph, truth: MixedGraph) -> F1Score:
    """F1 over edges with their marks, for PAGs: an edge is right if the pair is adjacent in both
    with the same two marks.

    So o-o, o->, -->, <->, --- and the rest are different items: every edge whose marks are not
    exactly the true ones costs precision and recall.  Never above :func:`skeleton_f1`, which
    ignores the marks.

    Args:
        estimate: The estimated graph.
        truth: The true graph (a PAG, if the estimate is one), over the same names in any order.

    Returns:
        The score; two graphs without edges score 1.

    Raises:
        GraphError: If the graphs have different names.
    """
    estimated, true = _aligned(estimate, truth)
    same = (estimated.marks == true.marks) & (estimated.marks.T == true.marks.T) & true.adjacency
    counts = (np.count_nonzero(np.triu(same)), estimated.n_edges, true.n_edges)
    return F1Score(*(int(count) for count in counts))


_MARK_LABELS = {
    Mark.NONE: "none",
    Mark.CIRCLE: "circle",
    Mark.ARROW: "arrowhead",
    Mark.TAIL: "tail",
}


@final
@dataclass(frozen=True)
class MarkConfusion:
    """How often each true mark was estimated as which mark, over both ends of every pair of nodes.

    ``str()`` of it is a table, true marks in rows and estimated ones in columns.

    Args:
        counts: Four rows (the true mark) of four numbers (the estimated one), in the order of
            ``Mark``: none, circle, arrowhead, tail.  They sum to d (d - 1).

    Raises:
        OptionError: If the counts are not four rows of four non-negative integers.
    """

    counts: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        array = np.asarray(self.counts)
        if array.shape != (4, 4) or array.dtype.kind not in "iu" or not (array >= 0).all():
            raise OptionError(
                f"counts must be four rows of four non-negative integers, got {self.counts!r}"
            )
        object.__setattr__(
            self, "counts", tuple(tuple(int(count) for count in row) for row in array)
        )

    def count(self, *, true: Mark, estimated: Mark) -> int:
        """Number of ends whose mark is ``true`` in the truth and ``estimated`` in the estimate."""
        return self.counts[Mark(true)][Mark(estimated)]

    def f1(self, mark: Mark) -> F1Score:
        """F1 over the ends with this mark: right where it stands at the same end of the same pair
        in both graphs.

        With ``Mark.NONE`` the items are the ends of pairs without an edge.
        """
        mark = Mark(mark)
        return F1Score(
            self.counts[mark][mark], sum(row[mark] for row in self.counts), sum(self.counts[mark])
        )

    def __str__(self) -> str:
        labels = list(_MARK_LABELS.values())
        width = max(9, *(len(str(count)) for row in self.counts for count in row)) + 2
        lines = ["true \\ estimated" + "".join(f"{label:>{width}}" for label in labels)]
        lines += [
            f"{label:<16}" + "".join(f"{count:>{width}}" for count in row)
            for label, row in zip(labels, self.counts, strict=True)
        ]
        return "\n".join(lines)


def mark_confusion(estimate: MixedGraph, truth: MixedGraph) -> MarkConfusion:
    """The confusion table of marks: for every ordered pair (i, j) the mark at j in the truth and in
    the estimate.

    Each pair of nodes counts twice, once for each end.  An end where one graph has an edge and the
    other has none is counted in the row or column "none".

    >>> truth = MixedGraph.from_edges(["a", "b", "c"], ["a o-> b", "b <-> c"])
    >>> print(mark_confusion(MixedGraph.from_edges(["a", "b", "c"], ["a --> b"]), truth))
    true \\ estimated       none     circle  arrowhead       tail
    none                      2          0          0          0
    circle                    0          0          0          1
    arrowhead                 2          0          1          0
    tail                      0          0          0          0

    Args:
        estimate: The estimated graph.
        truth: The true graph, over the same names in any order.

    Returns:
        The table.

    Raises:
        GraphError: If the graphs have different names.
    """
    estimated, true = _aligned(estimate, truth)
    ends = ~np.eye(true.n_nodes, dtype=bool)
    codes = 4 * true.marks[ends].astype(np.int64) + estimated.marks[ends]
    table = np.bincount(codes, minlength=16).reshape(4, 4)
    return MarkConfusion(tuple(tuple(int(count) for count in row) for row in table))


def summary(estimate: MixedGraph, truth: MixedGraph) -> dict[str, F1Score | int]:
    """The metrics of DAGs and CPDAGs by name: ``skeleton_f1``, ``orientation_f1``, ``arc_f1`` and
    ``shd``.

    For PAGs see also :func:`mark_f1` and :func:`mark_confusion`, which are not part of it.

    Args:
        estimate: The estimated graph.
        truth: The true graph, over the same names in any order.

    Returns:
        A dictionary from the function's name to its result.

    Raises:
        GraphError: If the graphs have different names.
    """
    return {
        metric.__name__: metric(estimate, truth)
        for metric in (skeleton_f1, orientation_f1, arc_f1, shd)
    }


def _aligned(estimate: MixedGraph, truth: MixedGraph) -> tuple[MixedGraph, MixedGraph]:
    for argument, graph in (("estimate", estimate), ("truth", truth)):
        if not isinstance(graph, MixedGraph):
            raise GraphError(
                f"{argument}: {a_type(graph)} is not a MixedGraph; make one with "
                "MixedGraph.from_dag or from_edges"
            )
    missing = sorted(set(truth.names) - set(estimate.names))
    extra = sorted(set(estimate.names) - set(truth.names))
    if missing or extra:
        raise GraphError(
            f"estimate and truth must have the same names: the estimate lacks {missing}, the "
            f"truth lacks {extra}; "
            "compare subgraphs over the common names"
        )
    return estimate.reordered(truth.names), truth


def _arcs(graph: MixedGraph) -> np.ndarray:
    arrow = graph.marks == Mark.ARROW
    return graph.adjacency & ~(arrow.T & ~arrow)


def _f1(estimated: np.ndarray, true: np.ndarray) -> F1Score:
    counts = (
        np.count_nonzero(estimated & true),
        np.count_nonzero(estimated),
        np.count_nonzero(true),
    )
    return F1Score(*(int(count) for count in counts))
