"""Sites that differ: the site as a context, and which mechanisms it changes."""

from __future__ import annotations

import dataclasses
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import jaxcd
from jaxcd.errors import GraphError, OptionError
from jaxcd.federated import shared_mechanisms, with_site, with_site_column
from tests.helpers import coded, levelled, simulated

NAMES = ("north", "south", "east")
DAG = nx.DiGraph([("v0", "v1"), ("v1", "v2")])


def rows(n: int, seed: int, follows: float = 0.8) -> jaxcd.Dataset:
    """A chain of three; how often v1 follows v0 is the site's."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, n)
    b = np.where(rng.random(n) < follows, a, rng.random(n) < 0.1)  # its share moves as well
    c = np.where(rng.random(n) < 0.7, b, rng.integers(0, 2, n))
    return coded(np.column_stack([a, b, c]), 2, 2, 2)


def bought(follows: tuple[float, float, float], kind: Any, *, n: int = 4_000, seed: int = 0) -> Any:
    sites = {
        name: with_site(rows(n, 10 * seed + place, share), name, NAMES)
        for place, (name, share) in enumerate(zip(NAMES, follows, strict=True))
    }
    return jaxcd.federate(sites, kind, budget=jaxcd.Budget(1.0, 1e-6), noise=simulated(seed))


@pytest.mark.parametrize("kind", [jaxcd.Histogram(), jaxcd.Marginals()], ids=["hist", "marg"])
def test_the_mechanism_that_differs_is_named(kind: Any) -> None:
    found = shared_mechanisms(bought((0.8, 0.8, 0.2), kind), DAG)
    assert [each.name for each in found] == ["v0", "v1", "v2"]
    assert [each.causes for each in found] == [(), ("v0",), ("v1",)]
    by_name = {each.name: each for each in found}
    assert by_name["v1"].differs() and not by_name["v0"].differs()
    assert by_name["v2"].pvalue is None or not by_name["v2"].differs()


def test_equal_sites_are_rarely_called_different() -> None:
    """At most the level for all variables together: of 30 releases 1.5 expected, 7 has p = .001."""
    wrong = sum(
        any(
            each.differs()
            for each in shared_mechanisms(
                bought((0.8, 0.8, 0.8), jaxcd.Histogram(), n=600, seed=seed), DAG
            )
        )
        for seed in range(1, 31)
    )
    assert wrong <= 6


def test_equal_sites_are_rarely_called_different_where_strata_are_sparse() -> None:
    """Three rows a stratum and hardly any noise: by G five of ten releases are wrong."""
    names, wrong = NAMES[:2], 0
    graph = nx.DiGraph([("v0", "v2"), ("v1", "v2")])
    for seed in range(10):
        rng = np.random.default_rng(seed)
        law = rng.dirichlet(np.ones(4), size=(8, 8)).cumsum(axis=2)[..., :3]
        sites = {}
        for name in names:
            z, w = rng.choice(8, (2, 100), p=rng.dirichlet(np.ones(8)))
            v = (law[z, w] < rng.random((100, 1))).sum(axis=1)
            sites[name] = with_site(coded(np.column_stack([z, w, v]), 8, 8, 4), name, names)
        bought = jaxcd.federate(
            sites, jaxcd.Histogram(), budget=jaxcd.Budget(30.0), noise=simulated(seed)
        )
        wrong += shared_mechanisms(bought, graph)[2].differs()
    assert wrong <= 2


def test_the_site_has_no_causes_in_a_search() -> None:
    release = bought((0.9, 0.9, 0.1), jaxcd.Histogram())
    graph = jaxcd.search(release).graph
    assert graph.parents("site") == () and graph.adjacent("site", "v1")
    assert release.domain.interventions == {"site": {}}


def test_a_cpdag_is_taken_too_and_the_site_may_be_in_it() -> None:
    release = bought((0.8, 0.8, 0.2), jaxcd.Histogram())
    cpdag = jaxcd.MixedGraph.from_edges(["v0", "v1", "v2"], ["v0 --- v1", "v1 --- v2"])
    assert len(shared_mechanisms(release, cpdag)) == 3
    with_context = nx.DiGraph([*DAG.edges, ("site", "v1")])
    assert shared_mechanisms(release, with_context) == shared_mechanisms(release, DAG)


def test_bins_of_a_cause_do_not_hold_it_fixed() -> None:
    """The site moves a, and b is a with noise at all sites; within a bin of a the site tells b."""
    rng, n = np.random.default_rng(0), 6_000
    site = rng.integers(0, 2, n)
    a = rng.normal(size=n) + site
    frame = pd.DataFrame({"a": a, "b": a + 0.3 * rng.normal(size=n), "site": site})
    in_bins = dict.fromkeys("ab", jaxcd.data.Binned((-8, 0, 1, 8)))
    sites = {"site": jaxcd.Categorical((0, 1))}
    domain = jaxcd.Domain({**in_bins, **sites}, interventions={"site": {}})
    data = jaxcd.Dataset.from_frame(frame, domain=domain)
    release = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(1.0), noise=simulated(0))
    first, second = shared_mechanisms(release, nx.DiGraph([("a", "b")]))
    assert first.differs() and not second.differs() and second.pvalue is None
    for wrong in (data, None):
        with pytest.raises(OptionError, match="is no release; buy one with jaxcd.federate"):
            shared_mechanisms(wrong, nx.DiGraph([("a", "b")]))
    features = jaxcd.release(data, jaxcd.Features(), budget=jaxcd.NO_PRIVACY)
    with pytest.raises(OptionError, match="release of features does not answer ChiSquare; buy"):
        shared_mechanisms(features, nx.DiGraph([("a", "b")]))


def test_what_does_not_fit_is_refused() -> None:
    data = rows(50, 0)
    with pytest.raises(OptionError, match="'v1' is a column"):
        with_site_column(data.domain, NAMES, column="v1")
    plain = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(1.0), noise=simulated())
    with pytest.raises(OptionError, match="'site' is not in the release"):
        shared_mechanisms(plain, DAG)
    release = bought((0.8, 0.8, 0.2), jaxcd.Histogram(), n=50)
    with pytest.raises(GraphError, match="of the release's variables"):
        shared_mechanisms(release, nx.DiGraph([("a", "b")]))
    for wrong in (None, jaxcd.search(release)):
        with pytest.raises(GraphError, match="is no graph; give a networkx DiGraph"):
            shared_mechanisms(release, wrong)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="'west' is not a site; they are"):
        with_site(data, "west", NAMES)
    with pytest.raises(OptionError, match="single string 'north'"):
        with_site(data, "n", "north")


def test_the_column_is_the_sites_own() -> None:
    data = with_site(rows(20, 0), "south", NAMES, column="hospital")
    assert data.domain.names == ("v0", "v1", "v2", "hospital")
    assert set(data.discrete[:, 3].tolist()) == {1}
    assert with_site_column(levelled(2), ("á", "b")).names == ("v0", "site")


def test_the_people_of_a_site_stay_together():
    people = np.repeat(np.arange(10), 2)
    data = dataclasses.replace(rows(20, 0), people=people).reading("level")
    found = with_site(data, "south", NAMES)
    assert found.n_people == 10 and found.missing is data.missing
    budget = jaxcd.Budget(1.0, unit="person")
    bought = jaxcd.release(found, jaxcd.Histogram(), budget=budget, noise=simulated())
    assert bought.n_samples == 10
