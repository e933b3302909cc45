"""Cause or effect beside published accuracies: same pairs, same weights, all rows, same variant of
each method.

``python -m benchmarks.pairs_published [--quick] [--data FOLDER] [--out FILE]``

A claim is an accuracy that somebody published for a variant of IGCI, RECI or CDS on a collection
that is here.  Beside it: ours, their difference, and where a difference is expected, why.
Collections: the 102 scalar Tuebingen pairs under the weights of the version with 108; the same
without 47, 70 and 107, whose values are discrete; SIM and SIM-c.

Peer: cdt (which needs torch), whose implementations most of the published figures come from: on how
many pairs both decide alike, and the seconds of both.  It is left out with a line where it cannot
be imported.
"""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import numpy as np

import jaxcd
from benchmarks import experiment as ex
from benchmarks.pairs import PAIRS, unscored
from jaxcd.pairwise import (
    CausePair,
    Direction,
    Estimator,
    Monomial,
    Reference,
    Simulation,
    pair_accuracy_of,
    simulated,
    tuebingen,
)
from jaxcd.pairwise.igci import spacing_entropy

BROGUEIRA = (
    "Brogueira 2025, github.com/tiagobrogueira/Causal-Discovery-In-Exchangeable-Data, "
    "tables of results, with cdt's methods"
)
IMMER = (
    "Immer et al. 2023 (LOCI), github.com/aleximmer/loci, baseline_results/Tuebingen.tab: "
    "its scores under these weights"
)
ONE_RULER = "arXiv 2606.23767 (One Ruler), a re-run of RECI on the 102 scalar pairs"
DISCRETE = ("pair0047", "pair0070", "pair0107")
Decide = Callable[[np.ndarray, np.ndarray], Direction]
Score = Callable[[np.ndarray, np.ndarray], float]


@dataclass(frozen=True)
class Claim:
    """accuracy: as published.  why: what a difference from ours comes from, where one is
    expected.
    """

    method: str
    collection: str
    accuracy: float
    source: str
    why: str = ""


CLAIMS = (
    Claim("IGCI, uniform", "Tuebingen, 99", 0.680, IMMER),
    Claim(
        "IGCI, Gaussian",
        "Tuebingen, 102",
        0.609,
        BROGUEIRA,
        "theirs also answers the multivariate pair 105, of weight .5; counted as right it gives "
        "(.6035 x 38.498 + .5) / 38.998 = .609",
    ),
    Claim(
        "IGCI, Gaussian",
        "Tuebingen, 99",
        0.563,
        IMMER,
        "its scaling subtracts mean / deviation and divides by nothing, so that values keep their "
        'units: the row "IGCI, unscaled"',
    ),
    Claim("IGCI, unscaled", "Tuebingen, 99", 0.563, IMMER),
    Claim("IGCI, Gaussian", "SIM", 0.36, BROGUEIRA),
    Claim("IGCI, Gaussian", "SIM-c", 0.42, BROGUEIRA),
    Claim("RECI, monomial 3", "Tuebingen, 102", 0.705, BROGUEIRA),
    Claim("RECI, monomial 3", "Tuebingen, 102", 0.707, ONE_RULER),
    Claim("RECI, monomial 3", "SIM", 0.44, BROGUEIRA),
    Claim("RECI, monomial 3", "SIM-c", 0.53, BROGUEIRA),
    Claim("CDS", "Tuebingen, 102", 0.605, BROGUEIRA),
    Claim("CDS", "SIM", 0.71, BROGUEIRA),
    Claim("CDS", "SIM-c", 0.76, BROGUEIRA),
)


def _igci(reference: Reference) -> Decide:
    return lambda x, y: (
        jaxcd.igci(
            x, y, budget=jaxcd.NO_PRIVACY, reference=reference, estimator=Estimator.SPACING
        ).direction
    )


def _unscaled(x: np.ndarray, y: np.ndarray) -> Direction:
    return Direction.X_TO_Y if spacing_entropy(y) < spacing_entropy(x) else Direction.Y_TO_X


METHODS: dict[str, Decide] = {
    "IGCI, uniform": _igci(Reference.UNIFORM),
    "IGCI, Gaussian": _igci(Reference.GAUSSIAN),
    "IGCI, unscaled": _unscaled,
    "RECI, monomial 3": lambda x, y: (
        jaxcd.reci(x, y, budget=jaxcd.NO_PRIVACY, regressor=Monomial(3)).direction
    ),
    "CDS": lambda x, y: jaxcd.cds(x, y, budget=jaxcd.NO_PRIVACY).direction,
}


def collections(data: Path, *, quick: bool) -> dict[str, list[CausePair]]:
    """The pairs of each collection, the first 12 with ``quick``."""
    scalar = tuebingen(data).pairs
    found = {
        "Tuebingen, 102": scalar,
        "Tuebingen, 99": [pair for pair in scalar if pair.name not in DISCRETE],
        "SIM": simulated(data, Simulation.SIM).pairs,
        "SIM-c": simulated(data, Simulation.SIM_C).pairs,
    }
    return {name: list(pairs[:12] if quick else pairs) for name, pairs in found.items()}


def peer_scores() -> dict[str, Score]:
    """cdt's scores, above 0 for x -> y; empty where cdt cannot be imported."""
    try:
        igci, reci, cds = (
            getattr(import_module(f"cdt.causality.pairwise.{name}"), name)()
            for name in ("IGCI", "RECI", "CDS")
        )
    except ImportError as error:
        print(f"cdt is left out: {error} (pip install cdt torch)")
        return {}
    return {
        "IGCI, uniform": lambda x, y: igci.predict_proba((x, y), ref_measure="uniform"),
        "IGCI, Gaussian": lambda x, y: igci.predict_proba((x, y), ref_measure="gaussian"),
        "RECI, monomial 3": lambda x, y: reci.predict_proba((x, y)),
        "CDS": lambda x, y: cds.predict_proba((x, y)),
    }


def peer_direction(score: Score, pair: CausePair) -> Direction:
    """What a peer answers; it takes columns (n, 1)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = float(np.ravel(score(pair.x.copy()[:, None], pair.y.copy()[:, None]))[0])
    return (
        Direction.UNDECIDED if found == 0 else Direction.X_TO_Y if found > 0 else Direction.Y_TO_X
    )


def measure(claim: Claim, pairs: Sequence[CausePair], peer: Score | None) -> dict[str, Any]:
    """Our answers to the claim's pairs, and the peer's.  same: pairs on which the peer decides
    alike; None without it, or where it has no such variant.
    """
    decide = METHODS[claim.method]
    with ex.Clock() as clock:
        answers = [decide(pair.x, pair.y) for pair in pairs]
    ours = pair_accuracy_of([unscored(answer) for answer in answers], pairs).accuracy
    same, peer_seconds = None, None
    if peer is not None:
        with ex.Clock() as theirs:
            found = [peer_direction(peer, pair) for pair in pairs]
        peer_seconds = theirs.seconds
        same = sum(a is b for a, b in zip(answers, found, strict=True))
    return {
        "n_pairs": len(pairs),
        "published": claim.accuracy,
        "ours": ours,
        "difference": ours - claim.accuracy,
        "why": claim.why,
        "same": same,
        "seconds": clock.seconds,
        "peer_seconds": peer_seconds,
    }


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Every claim; those with a difference that is expected say why."""
    sets, peers = collections(chosen.data, quick=chosen.quick), peer_scores()
    for claim in CLAIMS:
        pairs, peer = sets[claim.collection], peers.get(claim.method)
        yield (claim.method, claim.collection, claim.source), measure, claim, pairs, peer
        if claim.why:
            print(f"{claim.method} on {claim.collection}: {claim.why}")
    record.write(peer=f"cdt {metadata.version('cdt')}" if peers else None)


EXPERIMENT = ex.Experiment(
    "pairs_published",
    __doc__,
    ("method", "collection", "source"),
    jobs,
    columns=ex.columns_of(
        "method",
        ex.Column("pairs", lambda row: f"{row.collection} ({row.n_pairs})"),
        "published:.3f; ours:.4f; difference:+.3f; cdt decides alike=same:d; "
        "s, ours=seconds:.2f; s, cdt=peer_seconds:.1f",
    ),
    options=(PAIRS,),
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
