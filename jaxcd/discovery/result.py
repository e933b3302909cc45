"""What a discovery returns: a graph, what it cost, and what may be said about the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxcd.graphs import MixedGraph
from jaxcd.privacy import PrivacyCost

__all__ = ["DiscoveryResult", "LevelRecord"]


@dataclass(frozen=True)
class LevelRecord:
    """One level of a search: pairs asked, and pairs that were separated."""

    level: int
    n_asked: int
    n_separated: int


@dataclass(frozen=True)
class DiscoveryResult:
    """The result of :func:`jaxcd.pc`; frozen.  In a private run every field is safe to publish.

    graph: the CPDAG.  separating_sets: for each separated pair the set that separated it (the empty tuple where the pair is
    marginally independent).
    cost: the guarantee of the run: the budget fixed in advance, whatever part of it was used.
    spent: what the events charged add up to; accounting, not a guarantee (it may depend on released answers).
    exhausted: whether the budget ran dry; the pairs that were not paid for keep their edges.
    info: levels, settings, and the ledger's table.
    """

    graph: MixedGraph
    separating_sets: Mapping[frozenset[str], tuple[str, ...]]
    cost: PrivacyCost
    spent: PrivacyCost
    exhausted: bool
    info: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        ended = "\nThe budget was exhausted: pairs that were not paid for kept their edges." if self.exhausted else ""
        return f"{self.graph}\nGuarantee: {self.cost}{ended}"

    def plot(self, ax: Any = None) -> Any:
        """Draws the graph with matplotlib; returns the axes."""
        from jaxcd.plotting import plot_graph

        return plot_graph(self.graph, ax=ax)

    def save(self, folder: str | Path, *, truth: MixedGraph | None = None, force: bool = False) -> Path:
        """Writes graph.png, graph.json, graph.dot, privacy.json and report.html; returns the folder.

        truth: a graph to compare with in the report.  force: whether an existing folder may be overwritten.
        Raises OptionError where the folder exists and ``force`` is False.
        """
        from jaxcd.report import write_report

        return write_report(self, folder, truth=truth, force=force)
