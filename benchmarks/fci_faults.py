"""Why FCI on data differs from the true PAG: which of its separations are none, and a test that
does not make one kind of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from rich.console import Console

import jaxcd
from benchmarks.fci_cases import Case
from jaxcd.citests import CITest, Evaluation, PreparedTest, Query

__all__ = ["Varying", "faults", "hidden_smoke", "print_hidden_smoke"]


class _PreparedVarying(PreparedTest):
    def __init__(self, prepared: PreparedTest) -> None:
        self._prepared = prepared

    def bucket(self, query: Query) -> Hashable:
        return self._prepared.bucket(query)

    def batch_size(self, bucket: Any) -> int:
        return self._prepared.batch_size(bucket)

    def admissible(self, query: Query) -> bool:
        return self._prepared.admissible(query)

    def evaluate(self, bucket: Any, queries: Sequence[Query], *, alpha: float) -> Evaluation:
        answer = self._prepared.evaluate(bucket, queries, alpha=alpha)
        # Without a degree of freedom the statistic is 0 but for rounding, and its p-value is
        # exactly 1.
        return answer._replace(margin=np.where(answer.log_pvalue < 0, answer.margin, np.inf))


@dataclass(frozen=True)
class Varying(CITest):
    """A test without privacy that says "dependent" where x or y does not vary given Z, instead of
    "independent".

    Where x is a function of Z, x and y are independent given Z whatever the graph is: faithfulness
    fails, and the answer says nothing of the edge.  A single p-value of 1 is how a test without a
    degree of freedom shows.

    test: ChiSquare or GTest.
    Source: Spirtes, Glymour, Scheines 2000, chapter 3: variables determined by others violate
    faithfulness.
    """

    test: CITest

    @property
    def name(self) -> str:
        """``Varying(...)`` with the test's name."""
        return f"Varying({self.test.name})"

    def prepare(self, data: jaxcd.Dataset | None, *, key: jax.Array | None = None) -> PreparedTest:
        return _PreparedVarying(self.test.prepare(data, key=key))


def faults(
    run: jaxcd.DiscoveryResult,
    truth: jaxcd.MixedGraph,
    *,
    data: jaxcd.Dataset,
    oracle: jaxcd.Oracle,
) -> dict[str, list[str]]:
    """Where a PAG differs from the true one, and what is behind it, in words.

    edges: those that differ.  wrong_separations: pairs and sets that separated them, but not in the
    truth, with what the data says.  ambiguous: triples that were left open.
    """
    found, true = (_by_pair(graph) for graph in (run.graph, truth))
    edges = [
        f"{true.get(pair, 'no edge')} in the truth, {found.get(pair, 'no edge')} found"
        for pair in dict.fromkeys((*true, *found))
        if true.get(pair) != found.get(pair)
    ]
    names, prepared = oracle.column_names(None), oracle.prepare(None)
    place = {name: i for i, name in enumerate(names)}
    wrong = []
    for pair, given in run.separating_sets.items():
        x, y = sorted(pair, key=place.__getitem__)
        query = Query.of(place[x], place[y], [place[name] for name in given])
        if prepared.evaluate(None, [query], alpha=0.05).margin[0] > 0:
            constant = [name for name in (x, y) if _is_function(data, name, given)]
            if constant:
                why = (
                    f"{' and '.join(constant)} is a function of {' and '.join(given)}, so that "
                    "nothing can depend on it any more"
                )
            else:
                answer = jaxcd.ci_test(
                    data,
                    x,
                    y,
                    given=given,
                    test=jaxcd.ChiSquare(),
                    budget=jaxcd.NO_PRIVACY,
                    key=None,
                )
                why = (
                    f"they depend on each other, but too weakly for {data.n_samples:,} rows: p "
                    f"= {answer.pvalue:.2g}"
                )
            wrong.append(f"{x} and {y} were separated by {' and '.join(given) or 'nothing'}: {why}")
    ambiguous = [
        f"not judged, for sets of both kinds separate the ends: {' - '.join(t)}"
        for t in run.info["ambiguous_triples"]
    ]
    return {"edges": edges, "wrong_separations": wrong, "ambiguous": ambiguous}


def _by_pair(graph: jaxcd.MixedGraph) -> dict[frozenset[str], str]:
    return {frozenset((edge.a, edge.b)): str(edge) for edge in graph.edges()}


def _is_function(data: jaxcd.Dataset, name: str, given: Sequence[str]) -> bool:
    """Whether a column has one value only wherever the given columns are the same."""
    columns = data.codes[:, [data.names.index(column) for column in (*given, name)]]
    n_strata = len(np.unique(columns[:, :-1], axis=0)) if given else 1
    return len(np.unique(columns, axis=0)) == n_strata


def hidden_smoke(n_samples: int, seed: int) -> list[dict[str, Any]]:
    """FCI without privacy on Asia without smoke: where it differs from the true PAG, and which
    wrong answers are behind it.
    """
    case = Case("asia", ("smoke",))
    data = case.sample(n_samples, jax.random.key(seed))
    oracle = jaxcd.Oracle(jaxcd.networks.load("asia").dag, latent=case.hidden)
    conservative = jaxcd.discovery.ColliderRule.CONSERVATIVE
    found = []
    for test, alpha, rule in (
        (jaxcd.ChiSquare(), 0.05, jaxcd.discovery.ColliderRule.SEPARATING_SET),
        (Varying(jaxcd.ChiSquare()), 0.05, jaxcd.discovery.ColliderRule.SEPARATING_SET),
        (Varying(jaxcd.ChiSquare()), 0.01, conservative),
    ):
        run = jaxcd.fci(
            data,
            test=test,
            decider=jaxcd.Threshold(alpha=alpha),
            budget=jaxcd.NO_PRIVACY,
            key=None,
            colliders=rule,
        )
        label = f"{test.name} at {alpha:g}" + (
            ", conservative rule" if rule is conservative else ""
        )
        found.append(
            {"run": label, "seed": seed, **faults(run, case.truth(), data=data, oracle=oracle)}
        )
    return found


def _count_words(n_differing: int) -> str:
    return {0: "the true PAG", 1: "one edge differs"}.get(
        n_differing, f"{n_differing} edges differ"
    )


def print_hidden_smoke(entries: Sequence[dict[str, Any]], console: Console) -> None:
    """:func:`hidden_smoke` for the screen."""
    console.print("\n[b]FCI without privacy on Asia without smoke, against the true PAG[/b]")
    for entry in entries:
        differing = entry["edges"]
        console.print(f"\n{entry['run']}: {_count_words(len(differing))}", highlight=False)
        for words in (*differing, *entry["wrong_separations"], *entry["ambiguous"]):
            console.print(f"  {words}", highlight=False, soft_wrap=True)
