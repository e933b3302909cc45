"""Reports: a folder with the picture, the graph, the price, and a page that says what they mean.

- graph.png: the picture; compared with the truth where one is given.
- graph.json: ``MixedGraph.to_json_dict()`` (``from_json_dict`` reads it back), ``separating_sets``,
  and ``confidence``: the probabilities of the edges and of the likelier missing ones, or null.
- graph.dot: the graph for Graphviz.
- privacy.json: the certificate (:mod:`jaxcd.privacy.certificate`; ``jaxcd verify`` checks it), with
  exhausted, secure_noise, settings, reasons and levels of the search.  JSON has no infinity: an
  infinite epsilon is the text ``"inf"``.  ``secure_noise`` is null where no noise was asked for.
- result.json: the rest of the result (:mod:`jaxcd.report.reading`), so that
  ``DiscoveryResult.load(folder)`` reads it back.
- report.html: one page that needs no other file and loads nothing.

A report of a private run is post-processing of the result.  The page also names the day on which it
was made and, from the command line, the command: both are public.  There is no time of the day and
no running time, which may depend on the data.
"""

from __future__ import annotations

import datetime
import json
import os
import shutil
import uuid
from pathlib import Path
from typing import Any

from jaxcd.errors import OptionError
from jaxcd.graphs import MixedGraph
from jaxcd.places import check_folder_takes, force_file, force_folder, path_of
from jaxcd.plotting import graph_png, graph_svg
from jaxcd.report.contents import graph_json, grouped_ledger, metrics_json
from jaxcd.report.page import report_page
from jaxcd.report.reading import result_json

__all__ = ["FILES", "check_folder", "write_report"]

FILES = ("graph.png", "graph.json", "graph.dot", "privacy.json", "result.json", "report.html")
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
            where nothing can be written to it or to the nearest parent that is there.
    """
    path = path_of("folder", folder, example="patients")
    if path.is_dir() and not force:
        raise OptionError(
            f"folder {str(path)!r} exists; give another one, or force=True to overwrite its files"
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
    if taken := [name for name in FILES if (path / name).is_dir()]:
        raise OptionError(
            f"folder {str(path)!r} holds a folder {taken[0]!r} where a file is written; give "
            "another place"
        )
    check_folder_takes("folder", path, above)
    return path


def write_report(
    result: Any,
    folder: str | Path,
    *,
    truth: MixedGraph | None = None,
    force: bool = False,
    command: str | None = None,
    date: str | None = None,
) -> Path:
    """Writes the files of a report.

    Everything is made before anything is written; a new folder appears under its name only when it
    is complete, and on the disk.

    Args:
        result: A DiscoveryResult, or anything with graph, separating_sets and certificate(); its
            confidence, if there is one, is shown.
        folder: Made with its parents.
        truth: A graph over the same names to compare with.
        force: Whether an existing folder is written to; of what is in it, only files of the same
            names are replaced.
        command: the line that made the result, which the page shows; None: from Python.
        date: the day that the page shows, such as "2026-01-31"; None takes today.

    Returns:
        The folder.

    Raises:
        OptionError: If the folder exists and ``force`` is False, or cannot be made.
        GraphError: If ``truth`` has other names.
    """
    path = check_folder(folder, force=force)
    confidence = getattr(result, "confidence", None)
    shown: dict[str, Any] = {
        "truth": truth,
        "strengths": None if confidence is None else confidence.adjacency,
    }
    graph, privacy = graph_json(result), result.certificate()
    scores = None if truth is None else metrics_json(result.graph, truth)
    contents = {
        "graph.png": graph_png(result.graph, **shown),
        "graph.json": _json_text(graph).encode(),
        "graph.dot": result.graph.to_dot().encode(),
        "privacy.json": _json_text(privacy).encode(),
        "result.json": _json_text(result_json(result)).encode(),
        "report.html": report_page(
            graph=graph,
            privacy=privacy,
            ledger=grouped_ledger(privacy["ledger"]),
            picture=graph_svg(result.graph, **shown),
            scores=scores,
            command=command,
            date=datetime.date.today().isoformat() if date is None else date,
            is_latent=bool(getattr(result, "is_latent", False)),
        ).encode(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    # Where nothing but one step of the file system moves it into place: in a folder that is there,
    # which may be all that can be written, else beside the new one.
    draft = (path if path.is_dir() else path.absolute().parent) / f".jaxcd-{uuid.uuid4().hex}"
    draft.mkdir()
    try:
        for name, content in contents.items():
            (draft / name).write_bytes(content)
            force_file(draft / name)
        force_folder(draft)
        if path.is_dir():
            for name in FILES:
                os.replace(draft / name, path / name)
            force_folder(path)
        else:
            os.rename(draft, path)
            force_folder(path.absolute().parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return path


def _json_text(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
