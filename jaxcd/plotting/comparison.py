"""An estimated graph beside the true one, with the nodes at the same places."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from jaxcd.errors import OptionError
from jaxcd.graphs import MixedGraph
from jaxcd.plotting.drawing import (
    LEGEND_HEIGHT,
    LEGEND_WIDTH,
    MARGIN,
    MISSING,
    check_arguments,
    compared_edges,
    legend_handles,
    legend_style,
    line_widths,
    paint,
    place,
    png,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

__all__ = ["comparison_figure", "comparison_png"]

_GAP, _TITLE_HEIGHT = 0.4, 0.35  # inches


def comparison_figure(
    estimate: MixedGraph,
    truth: MixedGraph,
    *,
    titles: tuple[str, str] = ("estimated", "true"),
    highlight: Collection[str] = (),
    strengths: ArrayLike | None = None,
) -> Figure:
    """Draws the estimate (left) and the truth (right), each with its own marks, in one layout: that
    of the truth.

    In both halves an edge that is the same in both graphs is black and one whose marks differ is
    blue.  At the left an edge that the truth does not have is red; at the right one that the
    estimate misses is dashed grey.  A legend counts them.

    Args:
        estimate: The estimated graph: a DAG, a CPDAG, a PAG.
        truth: The true graph of the same kind, over the same names in any order.
        titles: What stands above the left and the right half.
        highlight: Names of nodes that are drawn in another colour.
        strengths: The probabilities of the estimate's adjacencies, as for
            :func:`jaxcd.plotting.plot_graph`; for the left half.

    Returns:
        A figure of the drawing's own size, outside pyplot; ``.savefig(...)`` writes it,
        :func:`comparison_png` makes a PNG of it.

    Raises:
        GraphError: If ``truth`` has other names, or a highlighted name is not in the graph.
        OptionError: If ``estimate`` or ``truth`` is not a MixedGraph, ``titles`` are no two texts,
            ``highlight`` is a single text, or ``strengths`` are no probabilities of the estimate's
            pairs.
    """
    from matplotlib.figure import Figure

    if isinstance(titles, str) or len(titles) != 2:
        raise OptionError(
            f"titles must be two texts, for the estimate and the truth, got {titles!r}"
        )
    if truth is None:
        raise OptionError("truth: None is not a MixedGraph; use plot_graph for one graph")
    marked = check_arguments(estimate, truth, highlight, what="estimate")
    widths = line_widths(estimate, strengths)
    truth = truth.reordered(estimate.names)
    edges = compared_edges(estimate, truth)
    placed = place(estimate, truth, edges)
    left = [(edge, kind) for edge, kind in edges if kind is not MISSING]
    kinds = {frozenset((edge.a, edge.b)): kind for edge, kind in edges}
    right = [(edge, kinds[frozenset((edge.a, edge.b))]) for edge in truth.edges()]

    panel = (max(placed.layout.width, 1.5) + 2 * MARGIN, placed.layout.height + 2 * MARGIN)
    width = max(2 * panel[0] + _GAP, LEGEND_WIDTH)
    height = panel[1] + _TITLE_HEIGHT + LEGEND_HEIGHT
    figure = Figure(figsize=(width, height))
    figure.set_layout_engine(None)
    free = width - 2 * panel[0]
    for half, (title, shown) in enumerate(zip(titles, (left, right), strict=True)):
        start = free / 4 + half * (panel[0] + free / 2)
        ax = figure.add_axes(
            (start / width, LEGEND_HEIGHT / height, panel[0] / width, panel[1] / height)
        )
        paint(ax, placed, shown, size=panel, marked=marked, widths=widths if half == 0 else None)
        middle, top = (start + panel[0] / 2) / width, 1 - 0.6 * _TITLE_HEIGHT / height
        figure.text(middle, top, title, size=11, ha="center", va="center", parse_math=False)
    figure.legend(handles=legend_handles(edges, 1.0), **legend_style(1.0))
    return figure


def comparison_png(
    estimate: MixedGraph,
    truth: MixedGraph,
    *,
    titles: tuple[str, str] = ("estimated", "true"),
    dpi: int = 144,
) -> bytes:
    """The drawing of :func:`comparison_figure` as the content of a PNG file.

    Args:
        estimate: the graph found.
        truth: the graph to compare with.
        titles: above the two graphs.
        dpi: dots per inch.

    Returns:
        The bytes of the file.
    """
    return png(comparison_figure(estimate, truth, titles=titles), dpi=dpi)
