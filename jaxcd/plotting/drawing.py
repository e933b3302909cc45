"""Drawing a mixed graph with matplotlib."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jaxcd.errors import OptionError
from jaxcd.graphs import Edge, Mark, MixedGraph
from jaxcd.plotting.layout import Layout, layered_layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["graph_figure", "graph_png", "plot_graph"]

_FONT_SIZE = 10.0  # points, in a figure of the drawing's own size
_BOX_HEIGHT = 0.34  # inches, like the next ones
_BOX_PADDING = 0.13
_ARROW_LENGTH, _ARROW_WIDTH = 0.13, 0.11
_CIRCLE_RADIUS = 0.05
_MARGIN = 0.18
_LONGEST_LABEL = 28

_BLACK, _BLUE, _RED, _GREY = "#1a1a1a", "#1f6fb4", "#d0211c", "#8a8a8a"


@dataclass(frozen=True)
class _Kind:
    """A class of edges in a comparison with the truth."""

    label: str
    color: str
    dashed: bool = False


_TRUE = _Kind("as in the truth", _BLACK)
_OTHER_MARKS = _Kind("true pair, other marks", _BLUE)
_EXTRA = _Kind("not in the truth", _RED)
_MISSING = _Kind("missing", _GREY, dashed=True)


def plot_graph(
    graph: MixedGraph,
    *,
    ax: Axes | None = None,
    truth: MixedGraph | None = None,
    highlight: Collection[str] = (),
) -> Axes:
    """Draws a graph in layers, parents above children, with the marks at both ends of every edge.

    Directed edges point down wherever that is possible; an edge without a direction may lead anywhere.  The drawing depends
    on nothing but the arguments.

    Args:
        graph: Any mixed graph.
        ax: Where to draw.  None makes a new figure of the drawing's own size: one of pyplot's where pyplot has been
            imported (so that notebooks and ``plt.show()`` show it), else a plain figure.
        truth: A graph over the same names.  Then edges as in the truth are black, edges between a true pair with other
            marks blue, edges that the truth does not have red, and edges that are missing dashed grey, with a legend.
        highlight: Names of nodes that are drawn in another colour.

    Returns:
        The axes; ``.figure.savefig(...)`` writes the picture.

    Raises:
        GraphError: If ``truth`` has other names, or a highlighted name is not in the graph.
        OptionError: If ``graph`` or ``truth`` is not a MixedGraph, or ``highlight`` is a single text.
    """
    for what, value in (("graph", graph), ("truth", truth)):
        if not isinstance(value, MixedGraph) and not (what == "truth" and value is None):
            raise OptionError(
                f"{what}: a {type(value).__name__} is not a MixedGraph; use run.graph or MixedGraph.from_edges"
            )
    if isinstance(highlight, str):
        raise OptionError(f"highlight = {highlight!r} is one text; use a tuple of names such as ({highlight!r},)")
    marked = {graph.index(name) for name in highlight}
    edges = _edges(graph, None if truth is None else truth.reordered(graph.names))
    labels = [_label(name) for name in graph.names]
    widths = [_text_width(label) + 2 * _BOX_PADDING for label in labels]
    layout = _layout(graph, truth, edges, widths)
    room = _MARGIN * 2 + (0.0 if truth is None else 0.3)
    size = (max(layout.width + 2 * _MARGIN, 2.5 if truth is None else 6.2), layout.height + room)
    if ax is None:
        ax = _new_axes(size)
    ax.set_axis_off()
    ax.set_aspect("equal")
    middle = layout.width / 2
    ax.set_xlim(middle - size[0] / 2, middle + size[0] / 2)
    ax.set_ylim(_MARGIN - room, layout.height + _MARGIN)
    extent = ax.get_window_extent()
    scale = float(min(extent.width / size[0], extent.height / size[1]) / ax.figure.dpi)
    for edge, kind in edges:
        _draw_edge(ax, graph, edge, kind, layout, widths, scale)
    for v, label in enumerate(labels):
        _draw_node(ax, layout.centers[v], widths[v], label, scale, highlighted=v in marked)
    if truth is not None:
        _draw_legend(ax, edges, scale)
    return ax


def graph_figure(graph: MixedGraph, *, truth: MixedGraph | None = None, highlight: Collection[str] = ()) -> Figure:
    """The drawing of :func:`plot_graph` on a figure of its own, outside pyplot."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1, 1))
    figure.set_layout_engine(None)
    ax = figure.add_axes((0, 0, 1, 1))
    plot_graph(graph, ax=ax, truth=truth, highlight=highlight)
    # The limits are in inches: drawn again at that size, text and lines come out at theirs.
    figure.set_size_inches(float(np.ptp(ax.get_xlim())), float(np.ptp(ax.get_ylim())))
    ax.clear()
    plot_graph(graph, ax=ax, truth=truth, highlight=highlight)
    return figure


def graph_png(graph: MixedGraph, *, truth: MixedGraph | None = None, dpi: int = 144) -> bytes:
    """The drawing of :func:`plot_graph` as the content of a PNG file."""
    import io

    figure = graph_figure(graph, truth=truth)
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes; its text is in the other files.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        # No version of matplotlib in the file: equal graphs give equal files.
        figure.savefig(buffer, format="png", dpi=dpi, facecolor="white", metadata={"Software": None})
    return buffer.getvalue()


def _new_axes(size: tuple[float, float]) -> Axes:
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        figure = pyplot.figure(figsize=size)
    else:
        from matplotlib.figure import Figure

        figure = Figure(figsize=size)
    return figure.add_axes((0, 0, 1, 1))


# ---- what is drawn ---------------------------------------------------------------------------------------------------


def _edges(graph: MixedGraph, truth: MixedGraph | None) -> list[tuple[Edge, _Kind]]:
    if truth is None:
        return [(edge, _Kind("", _BLACK)) for edge in graph.edges()]
    found = []
    for edge in graph.edges():
        true = truth.edge(edge.a, edge.b)
        found.append((edge, _EXTRA if true is None else _TRUE if true == edge else _OTHER_MARKS))
    return found + [(edge, _MISSING) for edge in truth.edges() if not graph.adjacent(edge.a, edge.b)]


def _layout(
    graph: MixedGraph, truth: MixedGraph | None, edges: list[tuple[Edge, _Kind]], widths: list[float]
) -> Layout:
    """In a comparison the truth says where the nodes go, and edges that it does not have are led around."""
    directed, undirected, routed = [], [], []
    for edge, kind in edges:
        pair = graph.index(edge.a), graph.index(edge.b)
        shape = edge if truth is None else truth.edge(edge.a, edge.b)
        if shape is None or kind is _EXTRA:
            routed.append(pair)
        elif shape.mark_b is Mark.ARROW and shape.mark_a is not Mark.ARROW:
            directed.append(pair)
        elif shape.mark_a is Mark.ARROW and shape.mark_b is not Mark.ARROW:
            directed.append(pair[::-1])
        else:
            undirected.append(pair)
    return layered_layout(widths, height=_BOX_HEIGHT, directed=directed, undirected=undirected, routed=routed)


def _label(name: str) -> str:
    plain = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in name)
    return plain if len(plain) <= _LONGEST_LABEL else plain[: _LONGEST_LABEL - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _text_width(text: str) -> float:
    """In inches, at the font size above."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        width, _, _ = TextToPath().get_text_width_height_descent(text, FontProperties(size=_FONT_SIZE), False)
    return max(float(width) / 72, 0.2)


# ---- drawing ---------------------------------------------------------------------------------------------------------


def _draw_node(ax: Axes, center: NDArray, width: float, label: str, scale: float, *, highlighted: bool) -> None:
    from matplotlib.patches import FancyBboxPatch

    rounding = 0.1
    box = FancyBboxPatch(
        (center[0] - width / 2 + rounding, center[1] - _BOX_HEIGHT / 2 + rounding),
        width - 2 * rounding,
        _BOX_HEIGHT - 2 * rounding,
        boxstyle=f"round,pad={rounding},rounding_size={rounding}",
        facecolor="#ffe49c" if highlighted else "#e9f0f8",
        edgecolor="#35506b",
        linewidth=1.0 * scale,
        zorder=3,
    )
    ax.add_patch(box)
    ax.text(
        center[0], center[1], label, size=_FONT_SIZE * scale, ha="center", va="center_baseline", zorder=4, parse_math=False
    )  # fmt: skip


def _draw_edge(
    ax: Axes, graph: MixedGraph, edge: Edge, kind: _Kind, layout: Layout, widths: list[float], scale: float
) -> None:
    from matplotlib.patches import Circle, Polygon

    i, j = graph.index(edge.a), graph.index(edge.b)
    route = _dense(layout.routes[i, j] if (i, j) in layout.routes else layout.routes[j, i][::-1])
    outside = ~_inside(route, layout.centers[i], widths[i]) & ~_inside(route, layout.centers[j], widths[j])
    if not outside.any():
        return
    first, last = np.flatnonzero(outside)[[0, -1]]
    line = route[first : last + 1]
    style = {"color": kind.color, "zorder": 2}
    for mark in (edge.mark_a, edge.mark_b):  # the line is turned around in between, so that each mark is at its end
        line = line[::-1]
        if mark is Mark.ARROW:
            tip, line = line[-1], _shortened(line, _ARROW_LENGTH)
            along = tip - line[-1]
            along /= max(float(np.hypot(*along)), 1e-9)
            across = np.array([-along[1], along[0]]) * _ARROW_WIDTH / 2
            base = tip - along * _ARROW_LENGTH
            ax.add_patch(Polygon([tip, base + across, base - across], closed=True, linewidth=0, **style))
        elif mark is Mark.CIRCLE:
            along = line[-1] - _shortened(line, _CIRCLE_RADIUS)[-1]
            center = line[-1] - along
            line = _shortened(line, 2 * _CIRCLE_RADIUS)
            ax.add_patch(
                Circle(
                    (float(center[0]), float(center[1])),
                    _CIRCLE_RADIUS,
                    facecolor="white",
                    edgecolor=kind.color,
                    linewidth=1.2 * scale,
                    zorder=2.5,
                )  # fmt: skip
            )
    ax.plot(
        line[:, 0], line[:, 1], color=kind.color, linewidth=1.3 * scale, zorder=1 if kind.dashed else 2,
        linestyle=(0, (4, 3)) if kind.dashed else "-", solid_capstyle="round",
    )  # fmt: skip


def _draw_legend(ax: Axes, edges: list[tuple[Edge, _Kind]], scale: float) -> None:
    from matplotlib.lines import Line2D

    handles = []
    for kind in (_TRUE, _OTHER_MARKS, _EXTRA, _MISSING):
        count = sum(found is kind for _, found in edges)
        handles.append(
            Line2D(
                [],
                [],
                color=kind.color,
                linewidth=1.5 * scale,
                linestyle="--" if kind.dashed else "-",
                label=f"{kind.label}: {count}",
            )  # fmt: skip
        )
    ax.legend(
        handles=handles, loc="lower center", ncols=4, frameon=False, fontsize=8.5 * scale, borderaxespad=0.1,
        bbox_to_anchor=(0.5, 0.0), columnspacing=1.4, handlelength=1.8,
    )  # fmt: skip


def _dense(route: NDArray, spacing: float = 0.01) -> NDArray:
    """Points along the route at equal distances of about ``spacing`` inches."""
    lengths = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(route, axis=0).T))])
    at = np.linspace(0, lengths[-1], max(int(lengths[-1] / spacing), 2) + 1)
    return np.stack([np.interp(at, lengths, route[:, k]) for k in (0, 1)], axis=1)


def _inside(points: NDArray, center: NDArray, width: float) -> NDArray:
    """Whether points lie in a box or within a hair of it."""
    reach = np.array([width, _BOX_HEIGHT]) / 2 + 0.02
    return (np.abs(points - center) < reach).all(axis=1)


def _shortened(line: NDArray, by: float) -> NDArray:
    """The line without its last ``by`` inches; at least two points are left."""
    from_end = np.concatenate([np.cumsum(np.hypot(*np.diff(line, axis=0)[::-1].T))[::-1], [0.0]])
    kept = max(int(np.count_nonzero(from_end >= by)), 2)
    return line[:kept]
