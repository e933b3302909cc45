"""What the files of a report hold, as JSON: the graph, the comparison with a truth, the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jaxcd import metrics
from jaxcd.graphs import Mark, MixedGraph
from jaxcd.privacy.certificate import plain

__all__ = ["graph_json", "grouped_ledger", "metrics_json"]


def graph_json(result: Any) -> dict[str, Any]:
    """What graph.json holds: the graph, each separated pair with its separating set, and the
    confidence in the edges.

    The confidence is null where the result has none, else ``meaning`` (one sentence: what the
    numbers are; not where ``method`` says it all), ``method``, ``n_draws`` and ``pairs``: the edges
    of the graph, then other pairs that are not improbable, each with the probability ``adjacent``
    and, where directions have an estimate, those of a -> b (``forward``), b -> a (``backward``) and
    a - b (``undirected``).

    Args:
        result: a DiscoveryResult.

    Returns:
        What :func:`json.dump` writes.
    """
    place = {name: i for i, name in enumerate(result.graph.names)}
    pairs = {
        tuple(sorted(pair, key=place.__getitem__)): given
        for pair, given in result.separating_sets.items()
    }
    sets = [
        {"pair": list(pair), "given": list(given)}
        for pair, given in sorted(pairs.items(), key=lambda item: [place[name] for name in item[0]])
    ]
    confidence = getattr(result, "confidence", None)
    return {
        **result.graph.to_json_dict(),
        "separating_sets": sets,
        "confidence": None if confidence is None else _confidence(confidence, result.graph),
    }


def _confidence(confidence: Any, graph: MixedGraph) -> dict[str, Any]:
    pairs = []
    for row in confidence.table(graph):
        numbers = {
            name: getattr(row, name) for name in ("adjacent", "forward", "backward", "undirected")
        }
        found = graph.edge(row.a, row.b)
        pairs.append(
            {
                "pair": [row.a, row.b],
                "found": None if found is None else found.symbol,
                **{name: plain(value) for name, value in numbers.items() if value is not None},
            }
        )
    return {
        **({"meaning": confidence.meaning} if confidence.meaning else {}),
        "method": confidence.method,
        "n_draws": int(confidence.n_draws),
        "pairs": pairs,
    }


def metrics_json(estimate: MixedGraph, truth: MixedGraph) -> dict[str, Any]:
    """F1, precision and recall of arcs, skeleton and orientations, and the structural Hamming
    distance; for PAGs (where a graph has circles) also those of edges with their marks,
    ``mark_f1``.

    Args:
        estimate: the graph found.
        truth: the graph to compare with.

    Returns:
        The numbers by name.

    Example:
        >>> from jaxcd.graphs import MixedGraph
        >>> from jaxcd.report import metrics_json
        >>> truth = MixedGraph.from_edges(["a", "b", "c"], ["a --> b", "c --> b"])
        >>> metrics_json(MixedGraph.from_edges(["a", "b", "c"], ["a --> b"]), truth)["shd"]
        1
    """
    scores = metrics.summary(estimate, truth)
    if any((graph.marks == Mark.CIRCLE).any() for graph in (estimate, truth)):
        scores["mark_f1"] = metrics.mark_f1(estimate, truth)
    return {
        name: value
        if isinstance(value, int)
        else {"f1": float(value), "precision": value.precision, "recall": value.recall}
        for name, value in scores.items()
    }


def grouped_ledger(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of a ledger's table that differ in their index only, together: each with its ``count``,
    in order of the first.

    Args:
        rows: of the ledger.

    Returns:
        The rows.
    """
    groups: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        kept = {name: value for name, value in row.items() if name != "index"}
        groups.setdefault(tuple(map(str, kept.items())), {**kept, "count": 0})["count"] += 1
    return list(groups.values())
