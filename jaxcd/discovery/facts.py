"""What every result says of its run: the data's public facts, the budget and the ledger.  One place
writes them.
"""

from __future__ import annotations

import math
from typing import Any

from jaxcd.data import Domain
from jaxcd.graphs import Knowledge
from jaxcd.privacy import Budget, PrivacyCost, Unit
from jaxcd.privacy.accountant import Accountant
from jaxcd.privacy.budget import delta_warning
from jaxcd.releases import Release

__all__ = ["facts_of_release", "facts_of_run", "known_before"]


def facts_of_run(
    accountant: Accountant,
    *,
    domain: Domain | None,
    n_samples: int,
    n_variables: int,
    snapshot: str | None = None,
) -> dict[str, Any]:
    """Of a search on data.  A domain that nobody declared is left out: its levels are data."""
    private = isinstance(accountant.ledger.budget, Budget)
    return {
        "n_samples": n_samples,
        "n_variables": n_variables,
        **_snapshot(snapshot),
        **({"domain": domain.to_json_dict()} if domain is not None and domain.declared else {}),
        **({"missing": "level"} if domain and domain.has_missing and private else {}),
        "budget": str(accountant.ledger.budget),
        "secure_noise": accountant.noise.secure,
        **_warnings(accountant.guarantee, n_samples, domain),
        "ledger": tuple(accountant.ledger.to_table()),
    }


def facts_of_release(release: Release) -> dict[str, Any]:
    """Of a search on a release, which was paid for."""
    return {
        "release": release.kind,
        "n_samples": release.n_samples,
        "n_variables": len(release.names),
        **_snapshot(release.snapshot),
        **({"domain": release.domain.to_json_dict()} if release.domain.declared else {}),
        **release.bought_in_domain,
        **({"missing": release.missing.value} if release.domain.has_missing else {}),
        "budget": str(release.cost),
        "secure_noise": release.secure_noise,
        **_warnings(release.cost, release.n_samples, release.domain, *release.warnings),
        "ledger": tuple(release.ledger),
    }


def known_before(knowledge: Knowledge | None) -> dict[str, Any]:
    """What a search was told of the graph, by the user and by the interventions of the domain."""
    return {} if knowledge is None else {"knowledge": knowledge.to_json_dict()}


def _snapshot(words: str | None) -> dict[str, Any]:
    return {} if words is None else {"snapshot": words}


def _warnings(
    cost: PrivacyCost, n_samples: int, domain: Domain | None, *more: str
) -> dict[str, Any]:
    of_delta = delta_warning(cost.epsilon, cost.delta, n_samples, unit=cost.unit)
    words = (*(() if of_delta is None else (of_delta,)), *_of_people(cost, domain), *more)
    return {"warnings": words} if words else {}


def _of_people(cost: PrivacyCost, domain: Domain | None) -> tuple[str, ...]:
    """That tests and scores take a person's rows for those of as many people."""
    if domain is None or domain.person is None or cost.unit is Unit.PERSON:
        return ()
    cure = (
        "take one row of each person, as a check"
        if math.isinf(cost.epsilon)
        else "a budget whose unit is a person weighs people"
    )
    return (
        f"several rows of one person (column {domain.person!r}) count as if they were of several "
        f"people, so that edges can be the chance of few people, repeated: {cure}",
    )
