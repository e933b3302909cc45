"""What a discovery returns: a graph, what it cost, and what may be said about the run."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jaxcd.checks import a_type, check_progress, counted
from jaxcd.discovery.edge_shares import EdgeConfidence
from jaxcd.errors import OptionError
from jaxcd.frozen import FrozenDict
from jaxcd.graphs import MixedGraph
from jaxcd.graphs.knowledge import given_edges
from jaxcd.privacy import PrivacyCost
from jaxcd.privacy.certificate import Certified

__all__ = ["DiscoveryResult", "LevelRecord", "SearchPass", "Step", "StepProgress", "teller"]


class SearchPass(enum.Enum):
    """Where the separating sets of a pass over the levels come from."""

    NEIGHBORS = "neighbors"
    POSSIBLE_D_SEP = "possible-d-sep"


@dataclass(frozen=True)
class LevelRecord:
    """One level of a search: pairs asked, pairs that were separated, and in which pass.

    Args:
        level: the size of the conditioning sets.
        n_asked: how many pairs were asked.
        n_separated: how many of them were separated.
        search_pass: the first or the second pass over the levels.
    """

    level: int
    n_asked: int
    n_separated: int
    search_pass: SearchPass = SearchPass.NEIGHBORS

    @classmethod
    def of_json(cls, *, search_pass: str, **fields: Any) -> LevelRecord:
        """A record of its fields as a file has them."""
        return cls(search_pass=SearchPass(search_pass), **fields)

    @property
    def progress(self) -> tuple[int, int | None]:
        """Levels done, and of how many: nobody knows."""
        return self.level + 1, None

    def __str__(self) -> str:
        place = "" if self.search_pass is SearchPass.NEIGHBORS else f" of {self.search_pass.value}"
        return (
            f"level {self.level}{place}: {counted(self.n_asked, 'pair')} asked, "
            f"{self.n_separated} separated"
        )


@dataclass(frozen=True)
class Step:
    """A step of a run on a release: what is done now, for a bar of progress.

    Args:
        words: what is done.
        progress: steps of this kind that are done, and of how many.
    """

    words: str
    progress: tuple[int, int | None]

    def __str__(self) -> str:
        done, total = self.progress
        return self.words if total is None else f"{self.words} ({done + 1} of {total})"


StepProgress = bool | Callable[[Step], None]
"""True prints each step; a function is called with it."""


def teller(progress: Any) -> Callable[[Any], None]:
    """The function that is called with each step; raises OptionError for what is no
    :data:`StepProgress`.
    """
    check_progress(progress, of="a Step")
    return progress if callable(progress) else print if progress else _silent


def _silent(step: Any) -> None:
    """Of a run whose progress nobody asked for."""


@dataclass(frozen=True)
class DiscoveryResult(Certified):
    """The graph that a search found, with its guarantee.

    In a private run every field is safe to publish.  It cannot be changed.

    Args:
        graph: the CPDAG, or the PAG.
        separating_sets: for each separated pair the set that separated it (the empty tuple where
            the pair is marginally independent).
        cost: the guarantee of the run: the budget fixed in advance, whatever part of it was used.
        spent: what the events charged add up to; accounting, not a guarantee (it may depend on
            released answers).
        exhausted: whether the budget ran dry; the pairs that were not paid for keep their edges.
        info: levels, settings, and the ledger's table.
        confidence: how sure the edges are, made from what was released; None where nobody asked
            (:meth:`with_confidence`).
        again: the same search, as a function of any release of the same columns; None where the
            search was not on a release.
        made_with: of a result that was read from a folder, the versions of the software that made
            it; None: those that run now.
        is_latent: whether the graph is a PAG, in which columns may be hidden, whatever its edges.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("earthquake").sample(50_000, key=jax.random.key(0))
        >>> run = jaxcd.pc(
        ...     data,
        ...     test=jaxcd.ChiSquare(),
        ...     decider=jaxcd.Threshold(),
        ...     budget=jaxcd.NO_PRIVACY,
        ...     key=None,
        ... )
        >>> run.graph.n_edges, run.separating_sets[frozenset({"JohnCalls", "MaryCalls"})]
        (4, ('Alarm',))
    """

    graph: MixedGraph
    separating_sets: Mapping[frozenset[str], tuple[str, ...]]
    cost: PrivacyCost
    spent: PrivacyCost
    exhausted: bool
    info: Mapping[str, Any] = field(default_factory=dict)
    confidence: EdgeConfidence | None = None
    again: Callable[[Any], DiscoveryResult] | None = field(default=None, repr=False, compare=False)
    made_with: Mapping[str, str] | None = field(default=None, repr=False, compare=False)
    is_latent: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "separating_sets", FrozenDict(self.separating_sets))
        object.__setattr__(self, "info", FrozenDict(self.info))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "again": None}  # a function of a key, which cannot be pickled

    def with_confidence(self, confidence: EdgeConfidence) -> DiscoveryResult:
        """The same result with the probabilities of its edges, which pictures and reports then
        show.

        Args:
            confidence: such as :func:`jaxcd.discovery.edge_confidence` makes, over the graph's
                names in any order.

        Raises:
            GraphError: it is of other names.
            OptionError: it is no confidence.
        """
        if not isinstance(confidence, EdgeConfidence):
            raise OptionError(
                f"confidence: {a_type(confidence)} is no confidence in edges; give what "
                "jaxcd.edge_confidence or jaxcd.discovery.decision_confidence returns"
            )
        return replace(self, confidence=confidence.reordered(self.graph.names))

    def __str__(self) -> str:
        ended = (
            "\nThe answers that the budget pays for were exhausted: pairs without one kept "
            "their edges."
            if self.exhausted
            else ""
        )
        sure = ""
        if self.confidence is not None:
            words = self.confidence.in_words(self.graph, given=given_edges(self.info))
            sure = f"\nConfidence in the edges:\n{words}"
        promise: object = self.cost
        if (records := self.info.get("randomised_records")) is not None:
            promise = f"the search adds none; {records['words']}"
        told = "".join(f"\nWarning: {words}" for words in self.info.get("warnings", ()))
        return f"{self.graph}{sure}\nGuarantee: {promise}{ended}{told}"

    def plot(self, ax: Any = None) -> Any:
        """Draws the graph with matplotlib, sure edges (:attr:`confidence`) in thick lines; returns
        the axes.
        """
        from jaxcd.plotting import plot_graph

        return plot_graph(
            self.graph,
            ax=ax,
            strengths=None if self.confidence is None else self.confidence.adjacency,
        )

    def save(
        self, folder: str | Path, *, truth: MixedGraph | None = None, force: bool = False
    ) -> Path:
        """Writes graph.png, graph.json, graph.dot, privacy.json, result.json and report.html;
        returns the folder, which :meth:`load` reads.

        Args:
            truth: a graph to compare with in the report.
            force: whether an existing folder may be overwritten.

        Raises:
            OptionError: the folder exists and ``force`` is False.
        """
        from jaxcd.report import write_report

        return write_report(self, folder, truth=truth, force=force)

    @staticmethod
    def load(folder: str | Path) -> DiscoveryResult:
        """Reads what :meth:`save` wrote: graph, separating sets, cost, spent, info and confidence
        are equal to what was saved; ``again`` is None.

        Args:
            folder: of a report.

        Raises:
            DataError: a file is missing.
            FormatError: a file is not what ``save`` writes, or two of them contradict each other.

        Example:
            >>> import jax, jaxcd, tempfile, pathlib
            >>> data = jaxcd.networks.load("cancer").sample(2_000, key=jax.random.key(0))
            >>> run = jaxcd.discover(data, budget=jaxcd.NO_PRIVACY)
            >>> folder = run.save(pathlib.Path(tempfile.mkdtemp()) / "cancer")
            >>> jaxcd.discovery.DiscoveryResult.load(folder).graph == run.graph
            True
        """
        from jaxcd.report import read_result

        found: DiscoveryResult = read_result(
            folder, result=DiscoveryResult, confidence=EdgeConfidence, level=LevelRecord.of_json
        )
        return found
