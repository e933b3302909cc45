"""Every class that protects data, or must not be used on data that need protection, says so."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import jax
import pytest

import jaxcd
from jaxcd.citests import CITest
from jaxcd.decisions import Decider
from jaxcd.local import LocalMechanism
from jaxcd.privacy import GuaranteeClaim, NoiseSource
from jaxcd.privacy.registry import REGISTRY, unregistered
from jaxcd.releases import ReleaseKind

ROOMS = ("citests", "decisions", "releases", "local", "privacy")
HOLDERS = [
    each
    for room in ROOMS
    for module in [importlib.import_module(f"jaxcd.{room}")]
    for name in module.__all__
    if inspect.isclass(each := getattr(module, name))
    and issubclass(each, (CITest, Decider, ReleaseKind, LocalMechanism))
    and not inspect.isabstract(each)
]


@pytest.mark.parametrize("holder", HOLDERS, ids=lambda each: each.__name__)
def test_every_class_states_its_own_claim(holder: type) -> None:
    assert isinstance(vars(holder).get("claim"), GuaranteeClaim), (
        "give the class a claim of its own"
    )


def test_the_list_is_what_the_classes_hold() -> None:
    listed = {each.mechanism.rpartition(".")[2]: each for each in jaxcd.guarantees()}
    assert {holder.__name__ for holder in HOLDERS} <= set(listed)
    assert len(listed) == len(jaxcd.guarantees()) >= 40
    for holder in HOLDERS:
        assert listed[holder.__name__].claim == holder.claim.claim


def test_what_is_called_proved_is_registered() -> None:
    """Of the classes that touch sensitive values, those with attacks, and no others."""
    registered = {entry.name for entry in REGISTRY}
    for holder in HOLDERS:
        if issubclass(holder, (CITest, Decider, ReleaseKind)):
            after = holder.claim.claim.startswith("post-processing")
            assert holder.claim.proven == (holder.__name__ in registered) or after, holder.__name__


def test_proofs_are_modules_with_docstrings() -> None:
    for each in jaxcd.guarantees():
        if each.proven:
            for name in each.proof.split(", "):
                assert importlib.import_module(name).__doc__, each.mechanism


def test_numbers_in_claims_are_those_of_the_tests() -> None:
    """They are computed from the code's own constants; here once more from the tests' answers."""
    for test, digits in (
        (jaxcd.CovarianceNorm(), "3 "),
        (jaxcd.PooledCovariance(), "4.172"),
        (jaxcd.KendallTau(), "2.044"),
        (jaxcd.Spearman(), "2.044"),
    ):
        bound = test.margin_sensitivity(
            alpha=0.05, n_samples=1000, relation=jaxcd.Budget(1.0).relation
        )
        assert bound is not None and f"{bound.value:.4g}" == digits.strip()
        assert digits in test.claim.claim
    assert issubclass(jaxcd.SimulatedNoise, NoiseSource) and not jaxcd.SimulatedNoise.claim.proven


class OwnKnowledge(jaxcd.Knowledge):
    """Somebody's own: it may do anything."""


@pytest.mark.parametrize("kind", [jaxcd.Marginals, jaxcd.LogLinear])
def test_what_is_known_before_leaves_a_release_proved(kind: type) -> None:
    tiers = [["smoke"], ["lung"]]
    assert unregistered(kind(knowledge=jaxcd.Knowledge(tiers=tiers))) == ()
    assert unregistered(kind(knowledge=OwnKnowledge(tiers=tiers))) != ()


class OwnTables(ReleaseKind):
    """Somebody's own, no dataclass: it may look at the rows before it buys anything."""

    word = "own tables"

    def check(self, domain: jaxcd.Domain, n_samples: int = 1) -> None:
        jaxcd.Marginals().check(domain, n_samples)

    def plan(self, domain: jaxcd.Domain, n_samples: int, *, budget: jaxcd.Budget) -> Any:
        return jaxcd.Marginals().plan(domain, n_samples, budget=budget)

    def buy(self, door: Any, accountant: Any) -> Any:
        return jaxcd.Marginals().buy(door, accountant)


class OwnCallable(OwnTables):
    """The same, which can be called."""

    def __call__(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize("own", [OwnTables, OwnCallable])
def test_what_somebody_elses_class_buys_inside_of_a_release_is_not_proved(own: type) -> None:
    domain = jaxcd.Domain({"a": jaxcd.Categorical((0, 1)), "b": jaxcd.Numeric(0, 7)})
    rows = [[i % 2, float(i % 7)] for i in range(60)]
    data = jaxcd.Dataset.from_array(rows, names=["a", "b"], domain=domain)
    kind = jaxcd.Discretised(of=own(), bins=2)
    cost = jaxcd.release(data, kind, budget=jaxcd.Budget(1.0, 1e-6)).cost
    assert not cost.proven and own.__name__ in cost.reason


def test_a_run_with_knowledge_is_proved() -> None:
    data = jaxcd.networks.load("asia").sample(2_000, key=jax.random.key(0))
    known = jaxcd.Knowledge(tiers=[["smoke"], ["lung"]])
    kind = jaxcd.Marginals(knowledge=known)
    assert jaxcd.release(data, kind, budget=jaxcd.Budget(1.0, 1e-6)).cost.proven
