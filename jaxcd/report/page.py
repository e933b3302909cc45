"""The page of a report: plain HTML with the picture inside, which loads nothing.

The words are in ``page.html.jinja``; here the numbers are written as texts.  The one script,
``page.js``, enlarges pictures and sorts tables; the page allows that script, by its digest, and no
other, and without it everything still stands there.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxcd.checks import counted
from jaxcd.graphs.knowledge import given_edges
from jaxcd.plotting import STYLES
from jaxcd.plotting.labels import short_labels
from jaxcd.privacy.budget import Unit, counted_records
from jaxcd.privacy.limits import KEPT_REASON
from jaxcd.privacy.rounding import promise_in_words, spent_in_words

__all__ = ["report_page"]

Given = Collection[Collection[str]]

_METRICS = {
    "arc_f1": "arcs",
    "skeleton_f1": "skeleton",
    "orientation_f1": "orientations",
    "mark_f1": "edges with their marks",
}
_DIRECTIONS = {"forward": "a --> b", "backward": "b --> a", "undirected": "a --- b"}
_MARKS = {
    "-->": "\N{RIGHTWARDS ARROW}",
    "<--": "\N{LEFTWARDS ARROW}",
    "<->": "\N{LEFT RIGHT ARROW}",
    "---": "\N{EM DASH}",
    "o->": "o\N{RIGHTWARDS ARROW}",
    "<-o": "\N{LEFTWARDS ARROW}o",
}
MATRIX_FROM = 25
"""From how many columns on the graph is shown as a matrix too."""

_NOISE = {True: "secure, from the operating system", False: "simulated from a key", None: "none"}


@functools.cache
def _template() -> Any:
    """The words, compiled once."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters["general"] = spent_in_words
    return environment.get_template("page.html.jinja")


def report_page(
    *,
    graph: Mapping[str, Any],
    privacy: Mapping[str, Any],
    ledger: Sequence[Mapping[str, Any]],
    picture: bytes,
    scores: Mapping[str, Any] | None,
    command: str | None,
    date: str,
    is_latent: bool = False,
) -> str:
    """The text of report.html.

    Args:
        graph: the contents of graph.json and privacy.json.
        privacy: as ``graph``.
        ledger: the ledger's rows, equal ones together, with their ``count``.
        picture: an SVG.
        scores: F1s against the truth, or None.
        command: the line that made the result; None: from Python.
        date: the day.
        is_latent: whether the graph is a PAG.
    """
    from markupsafe import Markup

    # A text that calls itself HTML (it has __html__) would not be escaped: plain texts only.
    graph, privacy, ledger = json.loads(json.dumps([graph, privacy, ledger]))
    guarantee, spent = privacy["guarantee"], privacy["spent"]
    private = guarantee["epsilon"] != "inf"
    script = Path(__file__).with_name("page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    gaussian = guarantee.get("accounting") == "gaussian"
    by_rho = bool(guarantee["delta"]) or any("epsilon" not in row for row in ledger)
    confidence = graph.get("confidence")
    joined = {name for a, _, b in graph["edges"] for name in (a, b)}
    given = given_edges(privacy["settings"])
    return _template().render(
        graph=graph,
        privacy=privacy,
        guarantee=guarantee,
        private=private,
        records=_records(privacy),
        under=_under(_condition(guarantee)),
        is_latent=is_latent,
        gaussian=gaussian,
        by_person=privacy.get("public", {}).get("counts") == "people",
        picture=base64.b64encode(picture).decode("ascii"),
        alone=[name for name in graph["names"] if name not in joined],
        confidence=confidence,
        edges=_edges(graph, given),
        line_styles=_line_styles(),
        matrix=_matrix(graph) if len(graph["names"]) >= MATRIX_FROM else None,
        sentences=_sentences(graph, privacy, given, is_latent=is_latent),
        office=_office(privacy, command=command, date=date),
        domain=_domain(privacy["public"]["domain"]),
        bought_in_domain=privacy["settings"].get("bought_in_domain"),
        share=min(spent["epsilon"] / guarantee["epsilon"], 1.0)
        if private and spent["epsilon"] != "inf"
        else None,
        script=Markup(script),
        script_hash=Markup(f"sha256-{digest}"),
        scores=None if scores is None else _scores(scores),
        factor=spent_in_words(math.exp(guarantee["epsilon"]), 4)
        if private and guarantee["epsilon"] < 20
        else None,
        used=promise_in_words(spent["epsilon"], spent["delta"], equals=" = ")
        if spent["epsilon"] != "inf"
        else "no finite sum",
        groups=[
            [
                entry.get("people", entry.get("rows")),
                _promised(entry["epsilon"]),
                _promised(entry["delta"]),
            ]
            for entry in privacy["groups"]
            if guarantee["proven"]
        ],
        ledger=[
            [
                row.get("label", ""),
                row["count"],
                row.get("mechanism", ""),
                _promised(row.get("epsilon")),
                *([_promised(row.get("gdp_rho", row.get("rho")))] if by_rho else ()),
            ]
            for row in ledger
        ],
        ledger_headings=[
            *("event", "times", "kind", "epsilon of each"),
            *(["rho of each"] if by_rho else ()),
        ],
        ledger_words=_ledger_words(ledger, gaussian=gaussian, by_rho=by_rho),
        n_events=sum(row["count"] for row in ledger),
        settings=[
            *(
                [name.replace("_", " "), _text(value)]
                for name, value in privacy["settings"].items()
                if name != "randomised_records"
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


def _ledger_words(ledger: Sequence[Mapping[str, Any]], *, gaussian: bool, by_rho: bool) -> str:
    """What its numbers are; of those that it has."""
    words = "Each was charged before its noise was drawn."
    if any("epsilon" not in row for row in ledger):
        kind = "Gaussian" if gaussian else "ZCDP"
        words += f" A {kind} event (Gaussian noise) has no epsilon of its own."
    if by_rho:
        kind = "Gaussian" if gaussian else "zero-concentrated"
        words += f" rho is its price in {kind} differential privacy."
    return words


def _edges(graph: Mapping[str, Any], given: Given) -> dict[str, Any]:
    """The edges and, where there is a confidence, the likelier pairs besides, with its numbers; of
    edges that were given none.
    """

    def words(a: str, symbol: str, b: str) -> str:
        return f"{symbol} (given)" if {a, b} in given else symbol

    confidence = graph.get("confidence")
    if confidence is None:
        rows = [[a, words(a, symbol, b), b] for a, symbol, b in graph["edges"]]
        return {"headings": ["from", "edge", "to"], "rows": rows}
    parts = ["adjacent"]
    if any("forward" in pair for pair in confidence["pairs"]):
        parts += _DIRECTIONS
    rows = []
    for pair in confidence["pairs"]:
        a, b = pair["pair"]
        told = {} if {a, b} in given else pair
        found = words(a, pair["found"], b) if pair["found"] else "none"
        rows.append([a, found, b, *(_share(told.get(part)) for part in parts)])
    return {
        "headings": ["a", "found", "b", *(_DIRECTIONS.get(part, part) for part in parts)],
        "rows": rows,
    }


def _line_styles() -> list[tuple[str, str]]:
    """What each style of a line means."""
    found, above = [], None
    for least, style, _ in STYLES:
        words = f"{least:g} and more" if above is None else f"{least:g} to {above:g}"
        found.append((words if least else f"below {above:g}", style))
        above = least
    return found


def _sentences(
    graph: Mapping[str, Any], privacy: Mapping[str, Any], given: Given, *, is_latent: bool
) -> list[str]:
    """What was found, how sure that is, and at what price."""
    n_rows = privacy["public"]["n_samples"]
    edges = [symbol for a, symbol, b in graph["edges"] if {a, b} not in given]
    directed = sum(symbol in ("-->", "<--") for symbol in edges)
    rows = "" if n_rows is None else f"{_so_many(n_rows, privacy['public'])} and "
    found = (
        f"In a table of {rows}{counted(len(graph['names']), 'column')}, "
        f"{counted(len(edges), 'pair')} of "
        f"columns {'was' if len(edges) == 1 else 'were'} found to be "
        + ("related whatever other columns are held fixed" if is_latent else "directly related")
    )
    found += f"; for {directed} of them the graph names a direction." if edges else "."
    if told := len(graph["edges"]) - len(edges):
        found += (
            f" {counted(told, 'edge')} {'was' if told == 1 else 'were'} not found but given: "
            "known before, or what the domain says was set."
        )
    return [f"Found: {found}", f"How sure: {_how_sure(graph, given)}", f"Price: {_price(privacy)}"]


def _how_sure(graph: Mapping[str, Any], given: Given) -> str:
    confidence = graph.get("confidence")
    if confidence is None:
        return (
            "no confidence was computed for single edges; noise and chance add and remove edges, "
            "and an arrow is a cause only under the conditions at the end of this page."
        )
    shares = [
        pair["adjacent"]
        for pair in confidence["pairs"]
        if pair["found"] and set(pair["pair"]) not in given
    ]
    if not shares:
        return "there is no edge to be sure of."
    parts, above = [], math.inf
    for least, style, _ in STYLES:
        n = sum(least - 1e-9 <= share < above - 1e-9 for share in shares)
        limits = f"of at least {least:g}" if math.isinf(above) else f"of {least:g} to {above:g}"
        parts.append(f"{n} {limits if least else f'below {above:g}'} ({style} lines)")
        above = least
    return (
        f"of {len(shares)} found, {parts[0].replace(' of', ' have a confidence of', 1)}, "
        f"{', '.join(parts[1:])}; below the table of edges stands what that number is."
    )


def _price(privacy: Mapping[str, Any]) -> str:
    guarantee, spent = privacy["guarantee"], privacy["spent"]
    if (records := _records(privacy)) is not None:
        return (
            "the search adds no protection; the graph was computed exactly from randomised "
            f"records: {records['words']}."
        )
    if guarantee["epsilon"] == "inf":
        return "no privacy; the graph was computed from exact statistics."
    claim = "" if guarantee["proven"] else " claimed, and not proved"
    delta = f" and delta = {spent_in_words(guarantee['delta'])}" if guarantee["delta"] else ""
    used = (
        ""
        if spent["epsilon"] == "inf"
        else f"; what was charged adds up to epsilon = {spent_in_words(spent['epsilon'])}"
    )
    return (
        "differential privacy with epsilon = "
        f"{spent_in_words(guarantee['epsilon'])}{delta}{claim}, for "
        f"{guarantee['unit']}{_under(_condition(guarantee))}{used}."
    )


def _condition(guarantee: Mapping[str, Any]) -> str:
    """What a proved guarantee takes for granted beside the ledger: whom it protects from whom
    where several owners make a release; "" for nothing."""
    if not guarantee["proven"]:
        return ""
    return "; ".join(part for part in guarantee["reason"].split("; ") if part != KEPT_REASON)


def _under(condition: str) -> str:
    return f" (only: {condition})" if condition else ""


def _records(privacy: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What holds for the records, of which the search was told that they were randomised."""
    found: Mapping[str, Any] | None = privacy["settings"].get("randomised_records")
    return found


def _counted(public: Mapping[str, Any]) -> str:
    """What the number of a table counts: rows, or people with however many rows."""
    return "people" if public.get("counts") == "people" else "rows"


def _so_many(number: int, public: Mapping[str, Any]) -> str:
    """So many of these."""
    return counted_records(number, Unit.PERSON if _counted(public) == "people" else Unit.ROW)


def _office(privacy: Mapping[str, Any], *, command: str | None, date: str) -> list[tuple[str, str]]:
    """What a privacy office files, line by line."""
    guarantee, public = privacy["guarantee"], privacy["public"]
    private = guarantee["epsilon"] != "inf"
    unit = _counted(public)
    rows = "" if public["n_samples"] is None else _so_many(public["n_samples"], public)
    columns = (public["domain"] or {"columns": {}})["columns"].values()
    n_declared = sum(not (column.get("ignore") or column.get("person")) for column in columns)
    lines = [
        ("date", date),
        ("software", ", ".join(f"{name} {text}" for name, text in privacy["versions"].items())),
        ("command", command or "from Python"),
        ("table", rows or f"its number of {unit} is not recorded"),
        ("domain", counted(n_declared, "declared column") if columns else "none was declared"),
    ]
    if private:
        claim = "proved" if guarantee["proven"] else "not proved"
        accounting = f"; accounting: {guarantee.get('accounting', 'zcdp')}"
        one = "one is replaced"
        if (most := guarantee["max_rows_per_person"]) > 1:
            one = f"up to {most}, of one person, are replaced"
        lines += [
            ("unit", guarantee["unit"]),
            ("relation", f"{guarantee['relation']}: the number of {unit} stays, {one}"),
            (
                "budget",
                f"{promise_in_words(guarantee['epsilon'], guarantee['delta'], equals=' = ')}, "
                f"fixed before the data was read; {claim}"
                + (accounting if guarantee["delta"] else ""),  # epsilons just add up
            ),
            (
                "taken as public",
                f"the number of {unit}, the names of the columns, their declared levels and "
                "bounds, the command and all settings",
            ),
        ]
    elif (records := _records(privacy)) is not None:
        lines += [("unit", "one record"), ("budget", f"none of the search; {records['words']}")]
    else:
        lines.append(("budget", "none"))
    lines += [
        ("noise", _NOISE[privacy["secure_noise"]]),
        ("warnings", "; ".join(privacy["warnings"]) or "none"),
        ("to be checked by", _checked_by(privacy, private=private)),
    ]
    return lines


def _checked_by(privacy: Mapping[str, Any], *, private: bool) -> str:
    if private:
        return "jaxcd verify privacy.json"
    if _records(privacy) is not None:
        return "the guarantee file of whoever randomised the records (see jaxcd privatize)"
    return "nothing was promised"


def _domain(domain: Mapping[str, Any] | None) -> list[tuple[str, str, str]]:
    rows = []
    for name, column in (domain or {"columns": {}})["columns"].items():
        words = ", ".join(map(str, column.get("levels", ())))
        if column.get("person"):
            words = "says which rows belong to one person"
        elif column.get("ignore"):
            words = "not read"
        elif "bins" in column:
            words = "bins with the edges " + ", ".join(f"{edge:g}" for edge in column["bins"])
        elif "lower" in column:
            words = f"{column['lower']} to {column['upper']}"
        if "missing" in column:
            codes = column["missing"]
            also = "" if codes is True else ": also " + ", ".join(map(str, codes))
            words += f"; cells may be missing{also}"
        if "other" in column:
            words += f"; any other cell counts as {column['other']}"
        if column.get("intervention"):
            words += "; says under which conditions a row was taken"
        rows.append((name, str(column.get("type", "")), words or "no bounds"))
    return rows


def _matrix(graph: Mapping[str, Any]) -> dict[str, Any]:
    """The graph as a matrix of marks, in the order of the names."""
    cell = 18
    shown = short_labels(graph["names"], longest=20)
    margin = 20 + 7 * max(map(len, shown))
    at = {name: margin + cell * i + cell // 2 for i, name in enumerate(graph["names"])}
    cells = []
    for a, symbol, b in graph["edges"]:
        back = symbol[::-1].translate(str.maketrans("<>", "><"))
        for first, mark, second in ((a, symbol, b), (b, back, a)):
            words = f"{first} {mark} {second}"
            cells.append((at[second], at[first], _MARKS.get(mark, mark), words))
    return {
        "cell": cell,
        "margin": margin,
        "size": margin + cell * len(at),
        "names": [(short, name, at[name]) for short, name in zip(shown, at, strict=True)],
        "cells": cells,
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


def _promised(value: Any) -> str:
    """A number of which a guarantee is made, rounded up."""
    return spent_in_words(value, 4) if isinstance(value, (int, float)) else _number(value)


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    # what is no plain value as files have it, such as --knowledge reads it
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else str(value)
