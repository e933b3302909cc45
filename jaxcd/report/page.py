"""The page of a report: plain HTML with the picture inside, which loads nothing.

The words are in ``page.html.jinja``; here the numbers are written as texts.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["report_page"]

_METRICS = {
    "arc_f1": "arcs",
    "skeleton_f1": "skeleton",
    "orientation_f1": "orientations",
    "mark_f1": "edges with their marks",
}
_DIRECTIONS = {"forward": "a --> b", "backward": "b --> a", "undirected": "a --- b"}
_NOISE = {True: "secure, from the operating system", False: "simulated from a key", None: "none"}


def report_page(
    *,
    graph: Mapping[str, Any],
    privacy: Mapping[str, Any],
    ledger: Sequence[Mapping[str, Any]],
    picture: bytes,
    scores: Mapping[str, Any] | None,
) -> str:
    """The text of report.html.

    Args:
        graph: the contents of graph.json and privacy.json.
        privacy: as ``graph``.
        ledger: the ledger's rows, equal ones together, with their ``count``.
        picture: a PNG.
        scores: F1s against the truth, or None.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    # A text that calls itself HTML (it has __html__) would not be escaped: plain texts only.
    graph, privacy, ledger = json.loads(json.dumps([graph, privacy, ledger]))
    environment.filters["general"] = lambda value: f"{value:g}"
    guarantee, spent = privacy["guarantee"], privacy["spent"]
    private = guarantee["epsilon"] != "inf"
    joined = {name for a, _, b in graph["edges"] for name in (a, b)}
    return environment.get_template("page.html.jinja").render(
        graph=graph,
        privacy=privacy,
        guarantee=guarantee,
        private=private,
        gaussian=guarantee.get("accounting") == "gaussian",
        by_person=privacy.get("public", {}).get("counts") == "people",
        picture=base64.b64encode(picture).decode("ascii"),
        alone=[name for name in graph["names"] if name not in joined],
        confidence=_confidence(graph.get("confidence")),
        scores=None if scores is None else _scores(scores),
        factor=f"{math.exp(guarantee['epsilon']):.4g}"
        if private and guarantee["epsilon"] < 20
        else None,
        used=f"epsilon = {spent['epsilon']:.6g}, delta = {spent['delta']:g}"
        if spent["epsilon"] != "inf"
        else "no finite sum",
        groups=[
            [entry["rows"], _number(entry["epsilon"]), _number(entry["delta"])]
            for entry in privacy["groups"]
            if guarantee["proven"]
        ],
        ledger=[
            [
                row.get("label", ""),
                row["count"],
                row.get("mechanism", ""),
                _number(row.get("epsilon")),
                _number(row.get("gdp_rho", row.get("rho"))),
            ]
            for row in ledger
        ],
        n_events=sum(row["count"] for row in ledger),
        settings=[
            *(
                [name.replace("_", " "), _text(value)]
                for name, value in privacy["settings"].items()
            ),
            ["noise", _NOISE[privacy["secure_noise"]]],
        ],
        levels=_levels(privacy["levels"]),
        separating_sets=[
            [
                " and ".join(entry["pair"]),
                ", ".join(entry["given"]) or "(nothing: marginally independent)",
            ]
            for entry in graph["separating_sets"]
        ],
    )


def _confidence(confidence: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The probabilities of the edges, and what they are."""
    if confidence is None:
        return None
    parts = ["adjacent"]
    if any("forward" in pair for pair in confidence["pairs"]):
        parts += _DIRECTIONS
    return {
        "method": confidence["method"],
        "headings": [_DIRECTIONS.get(part, part) for part in parts],
        "rows": [
            [*pair["pair"], pair["found"] or "none", *(_share(pair.get(part)) for part in parts)]
            for pair in confidence["pairs"]
        ],
    }


def _scores(scores: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "shd": scores["shd"],
        "rows": [
            [label, *(_number(scores[name][part]) for part in ("f1", "precision", "recall"))]
            for name, label in _METRICS.items()
            if name in scores
        ],
    }


def _levels(levels: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    columns = {"level": "level", "n_asked": "pairs asked", "n_separated": "pairs separated"}
    if len({level.get("search_pass") for level in levels}) > 1:  # FCI
        columns["search_pass"] = "sets of"
    return {
        "headings": list(columns.values()),
        "rows": [[level[name] for name in columns] for level in levels],
    }


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _number(value: Any) -> str:
    if value in ("inf", None):
        return "none"
    return f"{value:.4g}" if isinstance(value, (int, float)) else str(value)


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return str(value)
