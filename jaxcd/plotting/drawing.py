"""Drawing a mixed graph with matplotlib."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxcd.checks import a_type
from jaxcd.errors import OptionError
from jaxcd.graphs import Edge, Mark, MixedGraph
from jaxcd.plotting.labels import short_labels
from jaxcd.plotting.layout import Layout, layered_layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["STYLES", "graph_figure", "graph_png", "graph_svg", "plot_graph"]

_FONT_SIZE = 10.0  # points, in a figure of the drawing's own size
_BOX_HEIGHT = 0.34  # inches, like the next ones
_BOX_PADDING = 0.13
_ARROW_LENGTH, _ARROW_WIDTH = 0.13, 0.11
_CIRCLE_RADIUS = 0.05
MARGIN = 0.18
_LONGEST_LABEL = 28
LEGEND_WIDTH, LEGEND_HEIGHT = 6.2, 0.3
_LINE_WIDTH = 1.3  # points
_THINNEST, _THICKEST = 0.4, 2.6  # of edges with the probabilities 0 and 1, where these are shown

STYLES: tuple[tuple[float, str, Any], ...] = (
    (0.9, "solid", "-"),
    (0.5, "dashed", (0, (4, 2))),
    (0.0, "dotted", (0, (1, 1.6))),
)
"""From which probability on the line of an edge has which style, where probabilities are shown."""

_BLACK, _BLUE, _RED, _GREY = "#1a1a1a", "#1f6fb4", "#d0211c", "#8a8a8a"


@dataclass(frozen=True)
class Kind:
    """A class of edges in a comparison with the truth."""

    label: str
    color: str
    dashed: bool = False


TRUE = Kind("as in the truth", _BLACK)
OTHER_MARKS = Kind("true pair, other marks", _BLUE)
EXTRA = Kind("not in the truth", _RED)
MISSING = Kind("missing", _GREY, dashed=True)


def plot_graph(
    graph: MixedGraph,
    *,
    ax: Axes | None = None,
    truth: MixedGraph | None = None,
    highlight: Collection[str] = (),
    strengths: ArrayLike | None = None,
) -> Axes:
    """Draws a graph in layers, parents above children, with the marks at both ends of every edge.

    Directed edges point down wherever that is possible; an edge without a direction may lead
    anywhere.  The drawing depends on nothing but the arguments.

    Args:
        graph: Any mixed graph.
        ax: Where to draw.  None makes a new figure of the drawing's own size: one of pyplot's where
            pyplot has been imported (so that notebooks and ``plt.show()`` show it), else a plain
            figure.
        truth: A graph over the same names.  Then edges as in the truth are black, edges between a
            true pair with other marks blue, edges that the truth does not have red, and edges that
            are missing dashed grey, with a legend.
        highlight: Names of nodes that are drawn in another colour.
        strengths: For every two nodes the probability that they are adjacent, symmetric (d, d) in
            [0, 1], in the order of the names: the more probable an edge, the thicker its line,
            which is solid from .9 on, dashed from .5 on and dotted below.  None draws all lines
            alike, as missing edges always are.

    Returns:
        The axes; ``.figure.savefig(...)`` writes the picture.

    Raises:
        GraphError: If ``truth`` has other names, or a highlighted name is not in the graph.
        OptionError: If ``graph`` or ``truth`` is not a MixedGraph, ``ax`` no axes, ``highlight`` a
            single text, or ``strengths`` are no probabilities of the graph's pairs.
    """
    marked = check_arguments(graph, truth, highlight)
    if ax is not None and not hasattr(ax, "set_axis_off"):
        raise OptionError(
            f"ax = {ax!r} is no axes of matplotlib; leave it out for a new figure, and write "
            "a picture by .figure.savefig(path) of what is returned"
        )
    widths = line_widths(graph, strengths)
    edges = compared_edges(graph, None if truth is None else truth.reordered(graph.names))
    placed = place(graph, truth, edges)
    room = MARGIN * 2 + (0.0 if truth is None else LEGEND_HEIGHT)
    size = (
        max(placed.layout.width + 2 * MARGIN, 2.5 if truth is None else LEGEND_WIDTH),
        placed.layout.height + room,
    )
    if ax is None:
        ax = _new_axes(size)
    scale = paint(ax, placed, edges, size=size, marked=marked, widths=widths)
    if truth is not None:
        ax.legend(handles=legend_handles(edges, scale), **legend_style(scale))
    return ax


def graph_figure(
    graph: MixedGraph,
    *,
    truth: MixedGraph | None = None,
    highlight: Collection[str] = (),
    strengths: ArrayLike | None = None,
) -> Figure:
    """The drawing of :func:`plot_graph` on a figure of its own, outside pyplot.

    Args:
        graph: as for :func:`plot_graph`.
        truth: as for :func:`plot_graph`.
        highlight: as for :func:`plot_graph`.
        strengths: as for :func:`plot_graph`.

    Returns:
        A figure of matplotlib.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1, 1))
    figure.set_layout_engine(None)
    ax = figure.add_axes((0, 0, 1, 1))
    plot_graph(graph, ax=ax, truth=truth, highlight=highlight, strengths=strengths)
    # The limits are in inches: drawn again at that size, text and lines come out at theirs.
    figure.set_size_inches(float(np.ptp(ax.get_xlim())), float(np.ptp(ax.get_ylim())))
    ax.clear()
    plot_graph(graph, ax=ax, truth=truth, highlight=highlight, strengths=strengths)
    return figure


def graph_png(
    graph: MixedGraph,
    *,
    truth: MixedGraph | None = None,
    strengths: ArrayLike | None = None,
    dpi: int = 144,
) -> bytes:
    """The drawing of :func:`plot_graph` as the content of a PNG file.

    Args:
        graph: as for :func:`plot_graph`.
        truth: as for :func:`plot_graph`.
        strengths: as for :func:`plot_graph`.
        dpi: dots per inch.

    Returns:
        The bytes of the file.
    """
    return png(graph_figure(graph, truth=truth, strengths=strengths), dpi=dpi)


def graph_svg(
    graph: MixedGraph, *, truth: MixedGraph | None = None, strengths: ArrayLike | None = None
) -> bytes:
    """The drawing of :func:`plot_graph` as the content of an SVG file, which can be enlarged; names
    are drawn as shapes, so that no reader needs a font.

    Args:
        graph: as for :func:`plot_graph`.
        truth: as for :func:`plot_graph`.
        strengths: as for :func:`plot_graph`.

    Returns:
        The bytes of the file; equal graphs give equal files.
    """
    import io

    from matplotlib import rc_context

    figure, buffer = graph_figure(graph, truth=truth, strengths=strengths), io.BytesIO()
    with warnings.catch_warnings(), rc_context({"svg.hashsalt": "jaxcd", "svg.fonttype": "path"}):
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(
            buffer, format="svg", facecolor="white", metadata={"Date": None, "Creator": None}
        )
    return buffer.getvalue()


def png(figure: Figure, *, dpi: int) -> bytes:
    """The content of a PNG file with the figure; equal figures give equal files."""
    import io

    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes; its text is in the other files.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        # No version of matplotlib in the file.
        figure.savefig(
            buffer, format="png", dpi=dpi, facecolor="white", metadata={"Software": None}
        )
    return buffer.getvalue()


def _new_axes(size: tuple[float, float]) -> Axes:
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        figure = pyplot.figure(figsize=size)
    else:
        from matplotlib.figure import Figure

        figure = Figure(figsize=size)
    return figure.add_axes((0, 0, 1, 1))


# ---- what is drawn
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Placed:
    """Where the nodes of a graph and the edges go: names, labels and box widths (inches) of the d
    nodes, and the layout.
    """

    names: tuple[str, ...]
    labels: list[str]
    widths: list[float]
    layout: Layout


def place(graph: MixedGraph, truth: MixedGraph | None, edges: list[tuple[Edge, Kind]]) -> Placed:
    """The layout of the edges; in a comparison the truth says where the nodes go."""
    labels = short_labels(graph.names, longest=_LONGEST_LABEL)
    widths = [_text_width(label) + 2 * _BOX_PADDING for label in labels]
    return Placed(graph.names, labels, widths, _layout(graph, truth, edges, widths))


def paint(
    ax: Axes,
    placed: Placed,
    edges: list[tuple[Edge, Kind]],
    *,
    size: tuple[float, float],
    marked: Collection[int] = (),
    widths: Mapping[frozenset[str], float] | None = None,
) -> float:
    """Draws edges and nodes on axes of ``size`` inches, the layout at the top; returns the scale of
    text and lines.

    Args:
        widths: of the lines, in points, of the pairs that have their own.
    """
    layout = placed.layout
    ax.set_axis_off()
    ax.set_aspect("equal")
    middle = layout.width / 2
    ax.set_xlim(middle - size[0] / 2, middle + size[0] / 2)
    ax.set_ylim(layout.height + MARGIN - size[1], layout.height + MARGIN)
    extent = ax.get_window_extent()
    scale = float(min(extent.width / size[0], extent.height / size[1]) / ax.figure.dpi)
    for edge, kind in edges:
        own = None if widths is None or kind is MISSING else widths.get(frozenset((edge.a, edge.b)))
        style = (0, (4, 3)) if kind.dashed else "-" if own is None else _style(own)
        width = _LINE_WIDTH if own is None else own
        _draw_edge(ax, placed, edge, kind, scale, width=width, style=style)
    for v, label in enumerate(placed.labels):
        _draw_node(ax, layout.centers[v], placed.widths[v], label, scale, highlighted=v in marked)
    return scale


def check_arguments(
    graph: MixedGraph, truth: MixedGraph | None, highlight: Collection[str], *, what: str = "graph"
) -> set[int]:
    """Positions of the highlighted nodes, after a look at the arguments; ``what`` is the graph's
    name in messages.
    """
    for argument, value in ((what, graph), ("truth", truth)):
        if not isinstance(value, MixedGraph) and not (argument == "truth" and value is None):
            raise OptionError(
                f"{argument}: {a_type(value)} is not a MixedGraph; use run.graph or "
                "MixedGraph.from_edges"
            )
    if isinstance(highlight, str):
        raise OptionError(
            f"highlight = {highlight!r} is one text; use a tuple of names such as ({highlight!r},)"
        )
    return {graph.index(name) for name in highlight}


def line_widths(
    graph: MixedGraph, strengths: ArrayLike | None
) -> dict[frozenset[str], float] | None:
    """The width, in points, of the line of each edge; None where there are no strengths."""
    if strengths is None:
        return None
    values, d = np.asarray(strengths, dtype=np.float64), graph.n_nodes
    if (
        values.shape != (d, d)
        or not ((values >= 0) & (values <= 1)).all()
        or not (values == values.T).all()
    ):
        raise OptionError(
            f"strengths must be a symmetric ({d}, {d}) array of probabilities, one for every two "
            "nodes of the graph"
        )
    return {
        frozenset((edge.a, edge.b)): _THINNEST
        + (_THICKEST - _THINNEST) * float(values[graph.index(edge.a), graph.index(edge.b)])
        for edge in graph.edges()
    }


def _style(width: float) -> Any:
    """The style of the line of a probability, from its width."""
    probability = (width - _THINNEST) / (_THICKEST - _THINNEST)
    return next(style for least, _, style in STYLES if probability >= least - 1e-9)


def compared_edges(graph: MixedGraph, truth: MixedGraph | None) -> list[tuple[Edge, Kind]]:
    """Each edge of the graph and each missing one with its kind; the names of the two graphs are in
    the same order.
    """
    if truth is None:
        return [(edge, Kind("", _BLACK)) for edge in graph.edges()]
    found = []
    for edge in graph.edges():
        true = truth.edge(edge.a, edge.b)
        found.append((edge, EXTRA if true is None else TRUE if true == edge else OTHER_MARKS))
    return found + [(edge, MISSING) for edge in truth.edges() if not graph.adjacent(edge.a, edge.b)]


def _layout(
    graph: MixedGraph, truth: MixedGraph | None, edges: list[tuple[Edge, Kind]], widths: list[float]
) -> Layout:
    """In a comparison the truth says where the nodes go, and edges that it does not have are led
    around.
    """
    directed, undirected, routed = [], [], []
    for edge, kind in edges:
        pair = graph.index(edge.a), graph.index(edge.b)
        shape = edge if truth is None else truth.edge(edge.a, edge.b)
        if shape is None or kind is EXTRA:
            routed.append(pair)
        elif shape.mark_b is Mark.ARROW and shape.mark_a is not Mark.ARROW:
            directed.append(pair)
        elif shape.mark_a is Mark.ARROW and shape.mark_b is not Mark.ARROW:
            directed.append(pair[::-1])
        else:
            undirected.append(pair)
    return layered_layout(
        widths, height=_BOX_HEIGHT, directed=directed, undirected=undirected, routed=routed
    )


def _text_width(text: str) -> float:
    """In inches, at the font size above."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        width, _, _ = TextToPath().get_text_width_height_descent(
            text, FontProperties(size=_FONT_SIZE), False
        )
    return max(float(width) / 72, 0.2)


# ---- drawing
# --------------------------------------------------------------------------------------------------


def _draw_node(
    ax: Axes, center: NDArray, width: float, label: str, scale: float, *, highlighted: bool
) -> None:
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
        center[0],
        center[1],
        label,
        size=_FONT_SIZE * scale,
        ha="center",
        va="center_baseline",
        zorder=4,
        parse_math=False,
    )


def _draw_edge(
    ax: Axes, placed: Placed, edge: Edge, kind: Kind, scale: float, *, width: float, style: Any
) -> None:
    from matplotlib.patches import Circle, Polygon

    i, j = placed.names.index(edge.a), placed.names.index(edge.b)
    layout, widths = placed.layout, placed.widths
    route = _dense(layout.routes[i, j] if (i, j) in layout.routes else layout.routes[j, i][::-1])
    outside = ~_inside(route, layout.centers[i], widths[i]) & ~_inside(
        route, layout.centers[j], widths[j]
    )
    if not outside.any():
        return
    first, last = np.flatnonzero(outside)[[0, -1]]
    line = route[first : last + 1]
    look = {"color": kind.color, "zorder": 2}
    # the line is turned around in between, so that each mark is at its end
    for mark in (edge.mark_a, edge.mark_b):
        line = line[::-1]
        if mark is Mark.ARROW:
            tip, line = line[-1], _shortened(line, _ARROW_LENGTH)
            along = tip - line[-1]
            along /= max(float(np.hypot(*along)), 1e-9)
            across = np.array([-along[1], along[0]]) * _ARROW_WIDTH / 2
            base = tip - along * _ARROW_LENGTH
            ax.add_patch(
                Polygon([tip, base + across, base - across], closed=True, linewidth=0, **look)
            )
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
                )
            )
    ax.plot(
        line[:, 0],
        line[:, 1],
        color=kind.color,
        linewidth=width * scale,
        zorder=1 if kind.dashed else 2,
        linestyle=style,
        solid_capstyle="round",
    )


def legend_handles(edges: list[tuple[Edge, Kind]], scale: float) -> list[Any]:
    """One line for each kind of edge of a comparison, with how many there are."""
    from matplotlib.lines import Line2D

    return [
        Line2D(
            [],
            [],
            color=kind.color,
            linewidth=1.5 * scale,
            linestyle="--" if kind.dashed else "-",
            label=f"{kind.label}: {sum(found is kind for _, found in edges)}",
        )
        for kind in (TRUE, OTHER_MARKS, EXTRA, MISSING)
    ]


def legend_style(scale: float) -> dict[str, Any]:
    """Where and how a legend of :func:`legend_handles` stands: one row at the bottom."""
    return {
        "loc": "lower center",
        "ncols": 4,
        "frameon": False,
        "fontsize": 8.5 * scale,
        "borderaxespad": 0.1,
        "bbox_to_anchor": (0.5, 0.0),
        "columnspacing": 1.4,
        "handlelength": 1.8,
    }


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
