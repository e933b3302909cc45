"""Pictures of graphs."""

from jaxcd.plotting.drawing import graph_figure, graph_png, plot_graph

__all__ = ["graph_figure", "graph_png", "plot_graph"]
