"""Pictures of graphs."""

from jaxcd.plotting.comparison import comparison_figure, comparison_png
from jaxcd.plotting.drawing import STYLES, graph_figure, graph_png, graph_svg, plot_graph

__all__ = [
    "STYLES",
    "comparison_figure",
    "comparison_png",
    "graph_figure",
    "graph_png",
    "graph_svg",
    "plot_graph",
]
