"""The oracle: d-separation in a known graph instead of data."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import jax
import networkx as nx
import numpy as np

from jaxcd.checks import check_listed
from jaxcd.citests.base import CITest, Evaluation, PreparedTest, Query
from jaxcd.data.rows import Rows
from jaxcd.errors import OptionError
from jaxcd.graphs import DSeparation
from jaxcd.privacy.claims import GuaranteeClaim

__all__ = ["Oracle"]


class _PreparedOracle(PreparedTest):
    n_samples = 0

    def __init__(self, dag: nx.DiGraph, observed: Sequence[int], selected: Sequence[int]) -> None:
        self._separation = DSeparation(dag)
        self._observed = tuple(observed)
        self._selected = tuple(selected)

    def bucket(self, query: Query) -> Hashable:
        return None

    def batch_size(self, bucket: Hashable) -> int:
        return 1 << 16

    def evaluate(self, bucket: Hashable, queries: Sequence[Query], *, alpha: float) -> Evaluation:
        place = self._observed
        dependent = np.array(
            [
                not self._separation.separated(
                    place[q.x], place[q.y], (*(place[v] for v in q.given), *self._selected)
                )
                for q in queries
            ],
            dtype=np.float64,
        )
        return Evaluation(dependent, np.where(dependent > 0, -np.inf, 0.0), 2 * dependent - 1)


@dataclass(frozen=True, eq=False)
class Oracle(CITest):
    """Answers every query by d-separation in a known graph.

    With it PC or FCI finds what it would find in infinitely many samples that are faithful to the
    graph.  Statistic: 1 if x and y are d-connected given Z, else 0.  The data argument is ``None``;
    the names are those of the observed nodes, in the graph's node order.

    Args:
        dag: a networkx DiGraph without cycles.
        latent: nodes that are not observed.
        selected: nodes that are conditioned on in every query (selection variables; not observed
            either).

    Raises:
        OptionError: a latent or selected node is unknown.
        GraphError: the graph has a cycle.

    Example:
        >>> import jaxcd, networkx as nx
        >>> dag = nx.DiGraph([("rain", "wet"), ("sprinkler", "wet"), ("wet", "slippery")])
        >>> run = jaxcd.pc(
        ...     None,
        ...     test=jaxcd.Oracle(dag),
        ...     decider=jaxcd.Threshold(),
        ...     budget=jaxcd.NO_PRIVACY,
        ...     key=None,
        ... )
        >>> print(run.graph)
        rain --> wet
        sprinkler --> wet
        wet --> slippery
    """

    assumes = "that the graph is true"
    claim = GuaranteeClaim(
        "reads no data; refused by every mechanism",
        proof="there is nothing to protect",
        proven=False,
        assumptions="-",
    )

    dag: nx.DiGraph
    latent: tuple = ()
    selected: tuple = ()

    def __post_init__(self) -> None:
        for argument in ("latent", "selected"):
            nodes = check_listed(argument, getattr(self, argument), of="nodes")
            object.__setattr__(self, argument, nodes)
            for node in nodes:
                if node not in self.dag:
                    raise OptionError(
                        f"{argument}: {node!r} is not a node of the DAG; its nodes are "
                        f"{list(self.dag)}"
                    )

    def column_names(self, data: Rows | None) -> tuple[str, ...]:
        hidden = {*self.latent, *self.selected}
        return tuple(str(node) for node in self.dag if node not in hidden)

    def prepare(self, data: Rows | None, *, key: jax.Array | None = None) -> PreparedTest:
        if data is not None:
            raise OptionError("data: an Oracle answers from its DAG and reads no data; pass None")
        hidden = {*self.latent, *self.selected}
        nodes = list(self.dag)
        observed = [i for i, node in enumerate(nodes) if node not in hidden]
        return _PreparedOracle(self.dag, observed, [nodes.index(node) for node in self.selected])
