"""Reports: a folder with the picture, the graph, the price, and a page that says what they mean.

- graph.png: the picture; compared with the truth where one is given.
- graph.json: ``MixedGraph.to_json_dict()`` (``from_json_dict`` reads it back), ``separating_sets``,
  and ``confidence``: the probabilities of the edges and of the likelier missing ones, or null.
- graph.dot: the graph for Graphviz.
- privacy.json: the certificate (:mod:`jaxcd.privacy.certificate`; ``jaxcd verify`` checks it), with
  exhausted, secure_noise, settings, reasons and levels of the search.  JSON has no infinity: an
  infinite epsilon is the text ``"inf"``.  ``secure_noise`` is null where no noise was asked for.
- report.html: one page that needs no other file and loads nothing.

A report of a private run is post-processing of the result: it has no date and no running time,
which are no part of what was protected.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jaxcd import metrics
from jaxcd.errors import OptionError
from jaxcd.graphs import Mark, MixedGraph
from jaxcd.plotting import graph_png
from jaxcd.privacy.certificate import plain
from jaxcd.report.page import report_page

__all__ = ["FILES", "check_folder", "graph_json", "grouped_ledger", "metrics_json", "write_report"]

FILES = ("graph.png", "graph.json", "graph.dot", "privacy.json", "report.html")
"""What :func:`write_report` writes."""


def check_folder(folder: str | Path, *, force: bool = False) -> Path:
    """Returns the folder as a path if a report can be written there; called before a run, so that
    no budget is spent.

    Args:
        folder: where the report is to be.
        force: whether an existing folder may be overwritten.

    Returns:
        The folder.

    Raises:
        OptionError: the folder exists and ``force`` is False, where it or a parent is a file, or
            where a parent cannot be written to.
    """
    path = Path(folder)
    if path.is_dir() and not force:
        raise OptionError(
            f"folder {str(path)!r} exists; give another one, or --force (force=True) to overwrite "
            "its files"
        )
    if (path.exists() or path.is_symlink()) and not path.is_dir():
        raise OptionError(f"folder {str(path)!r} is a file; give another name")
    above = (
        path
        if path.is_dir()
        else next((p for p in path.absolute().parents if p.exists()), Path("/"))
    )
    if not above.is_dir():
        raise OptionError(
            f"folder {str(path)!r} cannot be made: {str(above)!r} is a file; give another name"
        )
    if not os.access(above, os.W_OK | os.X_OK):
        raise OptionError(
            f"folder {str(path)!r} cannot be written: no permission in {str(above)!r}; give "
            "another place"
        )
    return path


def write_report(
    result: Any, folder: str | Path, *, truth: MixedGraph | None = None, force: bool = False
) -> Path:
    """Writes the five files of a report.

    Everything is made before anything is written; a new folder appears under its name only when it
    is complete.

    Args:
        result: A DiscoveryResult, or anything with graph, separating_sets and certificate(); its
            confidence, if there is one, is shown.
        folder: Made with its parents.
        truth: A graph over the same names to compare with.
        force: Whether an existing folder is written to; of what is in it, only files of the same
            names are replaced.

    Returns:
        The folder.

    Raises:
        OptionError: If the folder exists and ``force`` is False, or cannot be made.
        GraphError: If ``truth`` has other names.
    """
    path = check_folder(folder, force=force)
    confidence = getattr(result, "confidence", None)
    picture = graph_png(
        result.graph, truth=truth, strengths=None if confidence is None else confidence.adjacency
    )
    graph, privacy = graph_json(result), result.certificate()
    scores = None if truth is None else metrics_json(result.graph, truth)
    contents = {
        "graph.png": picture,
        "graph.json": _json_text(graph).encode(),
        "graph.dot": result.graph.to_dot().encode(),
        "privacy.json": _json_text(privacy).encode(),
        "report.html": report_page(
            graph=graph,
            privacy=privacy,
            ledger=grouped_ledger(privacy["ledger"]),
            picture=picture,
            scores=scores,
        ).encode(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, so that moving it into place is one step of the file system.
    draft = path.absolute().parent / f".{path.absolute().name}.{uuid.uuid4().hex}"
    draft.mkdir()
    try:
        for name, content in contents.items():
            (draft / name).write_bytes(content)
        if path.is_dir():
            for name in FILES:
                os.replace(draft / name, path / name)
        else:
            os.rename(draft, path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return path


def graph_json(result: Any) -> dict[str, Any]:
    """What graph.json holds: the graph, each separated pair with its separating set, and the
    confidence in the edges.

    The confidence is null where the result has none, else ``method``, ``n_draws`` and ``pairs``:
    the edges of the graph, then other pairs that are not improbable, each with the probability
    ``adjacent`` and, where directions have an estimate, those of a -> b (``forward``), b -> a
    (``backward``) and a - b (``undirected``).

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
    return {"method": confidence.method, "n_draws": int(confidence.n_draws), "pairs": pairs}


def metrics_json(estimate: MixedGraph, truth: MixedGraph) -> dict[str, Any]:
    """F1, precision and recall of arcs, skeleton and orientations, and the structural Hamming
    distance; for PAGs (where a graph has circles) also those of edges with their marks,
    ``mark_f1``.

    Args:
        estimate: the graph found.
        truth: the graph to compare with.

    Returns:
        The numbers by name.
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


def _json_text(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
