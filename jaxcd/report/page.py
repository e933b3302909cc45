"""The page of a report: plain HTML with the picture inside, which loads nothing."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

__all__ = ["report_page"]

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 60rem;
       margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; }
h2 { font-size: 1.2rem; margin-top: 2.2rem; border-bottom: 1px solid #ccd; }
img { max-width: 100%; height: auto; display: block; margin: 1rem auto; }
table { border-collapse: collapse; margin: .6rem 0; } caption { text-align: left; color: #555; }
th, td { text-align: left; padding: .2rem .9rem .2rem 0; border-bottom: 1px solid #e4e6ee;
         vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.banner { border: 3px solid #b00020; background: #ffe9ec; padding: .6rem 1rem; font-weight: 600; }
.promise { border-left: 5px solid #35506b; background: #eef3f9; padding: .6rem 1rem; }
"""

# Loads nothing, whatever a name might hold; the names are escaped besides.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"

_METRICS = {
    "arc_f1": "arcs",
    "skeleton_f1": "skeleton",
    "orientation_f1": "orientations",
    "mark_f1": "edges with their marks",
}


def report_page(
    *,
    graph: Mapping[str, Any],
    privacy: Mapping[str, Any],
    ledger: Sequence[Mapping[str, Any]],
    picture: bytes,
    scores: Mapping[str, Any] | None,
) -> str:
    """The text of report.html.

    graph, privacy: the contents of graph.json and privacy.json.  ledger: the ledger's rows, equal
    ones together, with their ``count``.  picture: a PNG.  scores: F1s against the truth, or None.
    """
    data = base64.b64encode(picture).decode("ascii")
    parts = [
        "<h1>A causal graph and its price</h1>",
        *_banners(privacy),
        f'<img alt="The graph; its edges are listed below." src="data:image/png;base64,{data}">',
        _edges(graph),
        _confidence(graph.get("confidence")),
        *([] if scores is None else [_scores(scores)]),
        "<h2>Guarantee</h2>",
        _guarantee(privacy),
        _ledger(ledger),
        _settings(privacy),
        _levels(privacy["levels"]),
        _separating_sets(graph["separating_sets"]),
        _limits(privacy),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>jaxcd: a causal graph</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + "\n</body>\n</html>\n"
    )


def _private(privacy: Mapping[str, Any]) -> bool:
    return privacy["guarantee"]["epsilon"] != "inf"


def _banners(privacy: Mapping[str, Any]) -> Iterable[str]:
    guarantee = privacy["guarantee"]
    if not _private(privacy):
        yield _banner(
            "NO PRIVACY. This graph was computed from exact statistics; it, and this page, may "
            "reveal single records."
        )
    elif privacy["secure_noise"] is False:
        yield _banner(
            "SIMULATED NOISE: NOT FOR RELEASE. The noise was made from a key, and whoever knows "
            "or guesses the key can take "
            "it off. This run is an experiment and protects nobody."
        )
    elif not guarantee["proven"]:
        yield _banner(f"NOT PROVED: {escape(guarantee['reason'])}.")
    for words in privacy["warnings"]:
        yield _banner(f"WARNING: {escape(words)}.")
    if privacy["exhausted"]:
        yield _banner(
            "THE BUDGET WAS EXHAUSTED: pairs that were not paid for any more kept their edges."
        )


def _banner(text: str) -> str:
    return f'<p class="banner">{text}</p>'


def _edges(graph: Mapping[str, Any]) -> str:
    listed = ", ".join(
        f"<code>{escape(f'{a} {symbol} {b}')}</code>" for a, symbol, b in graph["edges"]
    )
    joined = {name for a, _, b in graph["edges"] for name in (a, b)}
    alone = ", ".join(
        f"<code>{escape(name)}</code>" for name in graph["names"] if name not in joined
    )
    return (
        f"<p>{len(graph['names'])} nodes, {len(graph['edges'])} edges: {listed or 'none'}.</p>"
        + (f"<p>Joined to nothing: {alone}.</p>" if alone else "")
    )


def _confidence(confidence: Mapping[str, Any] | None) -> str:
    """The probabilities of the edges, and what they are."""
    if confidence is None:
        return ""
    parts = ["adjacent"]
    if any("forward" in pair for pair in confidence["pairs"]):
        parts += ["forward", "backward", "undirected"]
    headings = {
        "adjacent": "adjacent",
        "forward": "a --> b",
        "backward": "b --> a",
        "undirected": "a --- b",
    }
    rows = [
        [*pair["pair"], pair["found"] or "none", *(_share(pair.get(part)) for part in parts)]
        for pair in confidence["pairs"]
    ]
    return (
        "<h2>Confidence in the edges</h2>"
        + _table(
            ["a", "b", "found", *(headings[part] for part in parts)],
            rows,
            numbers=range(3, 3 + len(parts)),
            caption="Probabilities, computed from what was released already and at no further "
            "cost.  In the picture the line of a more "
            "probable adjacency is thicker.",
        )
        + f"<p>{escape(confidence['method'][:1].upper() + confidence['method'][1:])}.</p>"
    )


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _scores(scores: Mapping[str, Any]) -> str:
    rows = [
        [label, *(_number(scores[name][part]) for part in ("f1", "precision", "recall"))]
        for name, label in _METRICS.items()
        if name in scores
    ]
    return (
        "<h2>Against the truth</h2>"
        + _table(["", "F1", "precision", "recall"], rows, numbers=(1, 2, 3))
        + f"<p>Structural Hamming distance: {scores['shd']}. An undirected edge counts as two "
        "arcs.</p>"
    )


# ---- privacy
# --------------------------------------------------------------------------------------------------


def _guarantee(privacy: Mapping[str, Any]) -> str:
    guarantee, spent = privacy["guarantee"], privacy["spent"]
    if not _private(privacy):
        return f"<p>There is none: {escape(guarantee['reason'])}.</p>"
    epsilon, delta = guarantee["epsilon"], guarantee["delta"]
    pair = f"epsilon = {epsilon:g}, delta = {delta:g}"
    if not guarantee["proven"]:
        text = (
            f"<p><b>Claimed, not proved: {pair}</b> ({escape(guarantee['relation'])}). "
            f"{escape(guarantee['reason'])}.</p>"
        )
    else:
        factor = f"e<sup>{epsilon:g}</sup>" + (
            f" = {math.exp(epsilon):.4g}" if epsilon < 20 else ""
        )
        extra = f", plus {delta:g}" if delta else ""
        rows = guarantee["max_rows_per_person"]
        who = (
            "any one row were replaced by any other"
            if rows == 1
            else f"the rows of any one person (up to {rows}) were replaced by any others"
        )
        text = (
            f'<p class="promise"><b>{pair}</b> ({escape(guarantee["relation"])} neighbours; the '
            f"unit is {escape(guarantee['unit'])}), fixed "
            f"before the data was read ({escape(guarantee['reason'])}). If {who}, the probability "
            "of any outcome of this "
            "run (graph, separating sets, this page) would change by a factor of at most "
            f"{factor}{extra}.</p>"
        )
    used = (
        f"epsilon = {spent['epsilon']:.6g}, delta = {spent['delta']:g}"
        if spent["epsilon"] != "inf"
        else "no finite sum"
    )
    return (
        text
        + f"<p>The ledger used {used}; that is accounting ({escape(spent['words'])}).</p>"
        + _groups(privacy)
    )


def _groups(privacy: Mapping[str, Any]) -> str:
    """What holds for people with several rows."""
    if not privacy["groups"] or not privacy["guarantee"]["proven"]:
        return ""
    rows = [
        [str(entry["rows"]), _number(entry["epsilon"]), _number(entry["delta"])]
        for entry in privacy["groups"]
    ]
    return _table(
        ["rows of one person", "epsilon", "delta"],
        rows,
        numbers=(0, 1, 2),
        caption="What the same run guarantees to a person, or a household, with several rows. A "
        "budget with max_rows_per_person is "
        "priced for them from the start.",
    )


def _ledger(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return "<p>The ledger is empty: nothing was charged.</p>"
    shown = [
        [
            str(row.get("label", "")),
            str(row["count"]),
            str(row.get("mechanism", "")),
            _number(row.get("epsilon")),
            _number(row.get("rho")),
        ]
        for row in rows
    ]
    n_events = sum(row["count"] for row in rows)
    return _table(
        ["event", "times", "kind", "epsilon of each", "rho of each"],
        shown,
        numbers=(1, 3, 4),
        caption=f"The ledger: {n_events} events, each charged before its noise was drawn. A ZCDP "
        "event (Gaussian noise) has no "
        "epsilon of its own; rho is its price in zero-concentrated differential privacy.",
    )


def _settings(privacy: Mapping[str, Any]) -> str:
    rows = [[name.replace("_", " "), _text(value)] for name, value in privacy["settings"].items()]
    noise = {
        True: "secure, from the operating system",
        False: "simulated from a key",
        None: "none",
    }[privacy["secure_noise"]]
    reasons = "".join(f"<li>{escape(str(reason))}</li>" for reason in privacy["reasons"])
    return (
        "<h2>Settings</h2>"
        + _table(["", ""], [*rows, ["noise", noise]])
        + (f"<p>Why these:</p><ul>{reasons}</ul>" if reasons else "")
    )


def _levels(levels: Sequence[Mapping[str, Any]]) -> str:
    if not levels:
        return ""
    rows = [[str(level[name]) for name in ("level", "n_asked", "n_separated")] for level in levels]
    headings = ["level", "pairs asked", "pairs separated"]
    if len({level.get("search_pass") for level in levels}) > 1:  # FCI
        rows = [[*row, str(level["search_pass"])] for row, level in zip(rows, levels, strict=True)]
        headings.append("sets of")
    return _table(
        headings,
        rows,
        numbers=(0, 1, 2),
        caption="The search, level by level: the level is the size of the sets that may separate "
        "a pair.",
    )


def _separating_sets(sets: Sequence[Mapping[str, Any]]) -> str:
    if not sets:
        return "<h2>Separating sets</h2><p>No pair was separated.</p>"
    rows = [
        [
            " and ".join(entry["pair"]),
            ", ".join(entry["given"]) or "(nothing: marginally independent)",
        ]
        for entry in sets
    ]
    return "<h2>Separating sets</h2>" + _table(["pair", "independent given"], rows)


def _group_words(privacy: Mapping[str, Any]) -> str:
    guarantee = privacy["guarantee"]
    several = "A person with k times as many rows is protected less: epsilon grows to k times"
    if not guarantee["delta"]:
        return f"{several} (the table above)."
    if guarantee["rho"] is None:
        return f"{several}, and delta even more (the table above)."
    return (
        f"{several} or, if that is more, to the epsilon of k squared times rho (the table "
        f"above; rho is {guarantee['rho']:.4g})."
    )


def _limits(privacy: Mapping[str, Any]) -> str:
    proven = _private(privacy) and privacy["guarantee"]["proven"]
    kept = [
        "Differential privacy bounds what anybody, whatever else they know, can learn from this "
        "run about a single record, "
        "and nothing that is done later with the graph alone can undo it.",
        f"The unit is {privacy['guarantee']['unit']}, with all its columns. "
        f"{_group_words(privacy)}",
        "Other private runs on the same people add up with this one. A ledger file (LedgerFile) "
        "keeps one total for all of them.",
    ]
    held = [
        "The number of rows, the names of the columns, their declared levels and bounds, and all "
        "settings are taken as "
        "public; they are not protected. Levels that were copied from the data would void the "
        "guarantee.",
        "That the graph is right. Noise and chance add and remove edges; the smaller the budget "
        "and the number of rows, the "
        "more.",
        "That an arrow is a cause. It is if there is no hidden common cause, if the data is a "
        "sample without selection, if "
        "the independences in the data are those of the graph (faithfulness), and if the test "
        "sees the dependences that "
        "there are. An undirected edge means that these data cannot tell the direction.",
        "Facts about everybody. That two columns depend on each other is what a graph is made to "
        "tell, and it may be used to "
        "draw conclusions about a person who is not in the data.",
        "Side channels. How long the run took and how much memory it used are not protected.",
    ]
    if not proven:
        kept = ["Nothing, for this run: see the top of the page."]
        held = ["Single records."] + held[1:]
    elif privacy["secure_noise"] is None:
        held.append("The quality of the noise: its source is not known here.")
    return (
        "<h2>What is and is not guaranteed</h2><h3>Guaranteed</h3><ul>"
        + "".join(f"<li>{text}</li>" for text in kept)
        + "</ul><h3>Not guaranteed</h3><ul>"
        + "".join(f"<li>{text}</li>" for text in held)
        + "</ul>"
    )


# ---- pieces
# --------------------------------------------------------------------------------------------------


def _number(value: Any) -> str:
    return (
        "none"
        if value in ("inf", None)
        else f"{value:.4g}"
        if isinstance(value, (int, float))
        else str(value)
    )


def _text(value: Any) -> str:
    return (
        {None: "none", True: "yes", False: "no"}[value]
        if value is None or isinstance(value, bool)
        else str(value)
    )


def _table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: Sequence[int] = (),
    caption: str | None = None,
) -> str:
    def line(tag: str, cells: Sequence[str]) -> str:
        marked = (
            f'<{tag} class="number">' if k in numbers else f"<{tag}>" for k in range(len(cells))
        )
        return (
            "<tr>"
            + "".join(f"{m}{escape(cell)}</{tag}>" for m, cell in zip(marked, cells, strict=True))
            + "</tr>"
        )

    top = line("th", head) if any(head) else ""
    legend = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{legend}{top}{''.join(line('td', row) for row in rows)}</table>"
