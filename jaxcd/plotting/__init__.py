"""Pictures of graphs."""

from jaxcd.plotting.comparison import comparison_figure, comparison_png
from jaxcd.plotting.drawing import graph_figure, graph_png, plot_graph

__all__ = ["comparison_figure", "comparison_png", "graph_figure", "graph_png", "plot_graph"]
