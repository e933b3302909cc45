"""A case of the audit, and what is wrong with its replays: prices, laws, scales and words that
are not as the ledger, the independent table and the noise say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jaxcd.audit.findings import Finding
from jaxcd.audit.neighbours import Pairs
from jaxcd.audit.replaying import Tape, Tapping, costs, replay
from jaxcd.audit.table import Facts, stated
from jaxcd.checks import counted
from jaxcd.privacy import GRID, NoiseSource
from jaxcd.privacy.repricing import price_again
from jaxcd.privacy.verifying import verify

__all__ = ["Case", "run_case"]


@dataclass(frozen=True)
class Case:
    """A run to be replayed.

    Args:
        name: of the case.
        entries: classes of the registry whose claims take part.
        run: data and noise to a result.
        pairs: neighbours of a trial.
        facts: public facts of a trial's first data set, for the independent table.
        info: what a result may say; None where it has no info.
        trials: how many pairs.
        least: the share of its price that some event must reach, or the search is blind.
    """

    name: str
    entries: tuple[str, ...]
    run: Callable[[Any, NoiseSource], Any] = field(repr=False)
    pairs: Pairs = field(repr=False)
    facts: Callable[[Any], Facts] = field(repr=False)
    info: frozenset[str] | None = field(default=None, repr=False)
    trials: int = 6
    least: float = 0.0


def run_case(
    case: Case, tap: Tapping, *, trials: int | None = None, seed: int = 0
) -> list[Finding]:
    """Replays a case on its pairs of neighbours; one finding for each kind of event.

    Checked of each pair: the two runs look the same from outside; no event costs more than it was
    charged; each event says what the independent table says; the noise had the scale that the event
    states, and the price follows from it; the certificate verifies; nothing is said but what may be
    said.
    """
    reached: dict[str, float] = {}
    wrong: dict[str, dict[str, None]] = {}

    def note(label: str, words: str) -> None:
        wrong.setdefault(label, {})[words] = None

    for trial in range(case.trials if trials is None else trials):
        rng = np.random.default_rng([seed, trial, len(case.name)])
        here, there = case.pairs(rng, trial)
        facts = case.facts(here)

        def shift(tape: Tape, facts: Facts = facts) -> int:
            return _shift(facts, tape)

        found = replay(tap, case.run, here, there, seed=trial, shift=shift)
        for part in found.different:
            note("the run", f"differs between neighbours that were given the same answers: {part}")
        rows = found.rows
        for row in rows:
            label = _kind(row["label"])
            reached.setdefault(label, 0.0)
            for words in _row_faults(row, facts, found.first):
                note(label, words)
        if unpaid := [index for index in found.first.calls if index >= len(rows)]:
            note("the run", f"draws noise for {counted(len(unpaid), 'event')} that no ledger shows")
            continue
        info = getattr(found.result, "info", None)
        if case.info is not None and info is not None and not set(info) <= case.info:
            note("the run", f"says {sorted(set(info) - case.info)}, which may depend on the data")
        if not verify(found.result.certificate()).holds:
            note("the run", "its certificate does not verify")
        if found.different:
            continue  # the second tape is not the first's coupling
        for index, share in costs(
            rows, found.first, found.second, shift=shift(found.first)
        ).items():
            label = _kind(rows[index]["label"])
            if label.endswith(": value") and not all(info["answered"]):  # type: ignore[index]
                # the value was not released: that it moves by more than its noise is for is why
                continue
            reached[label] = max(reached[label], share)
            if not share <= 1 + 1e-9:
                note(label, f"costs {share:.4g} times what it was charged")
            moved = _margins_moved(found.first.asked[index], found.second.asked[index])
            if not moved <= shift(found.first):
                note(
                    label,
                    f"a query moves by {moved} steps, more than the {shift(found.first)} that the "
                    "noise is for",
                )
    if reached and case.least > max(reached.values()) and not wrong:
        note(
            "the run",
            f"no pair of neighbours reached {case.least:.0%} of a price: the search is blind",
        )
    labels = dict.fromkeys([*reached, *wrong])
    return [
        Finding(
            f"replay: {case.name}", label, 1.0, reached.get(label, 0.0), tuple(wrong.get(label, ()))
        )
        for label in labels
    ]


def _kind(label: str) -> str:
    """A label without its numbers and names of columns."""
    words = "".join("#" if c.isdigit() else c for c in label)
    for start in ("bandwidth of", "quartile of"):
        if words.startswith(start):
            return start
    return words


def _shift(facts: Facts, tape: Tape) -> int:
    """d of the sparse vectors of a run, in steps of the grid."""
    if not facts.test or not any(
        kind == "geometric" for calls in tape.calls.values() for kind, *_ in calls
    ):
        return 0
    label = "sieve" if tape.rate < 1 else "sparse vector round"
    there = stated(label, facts if tape.rate == 1 else _with_subset(facts, tape), 1)
    assert there is not None
    return math.ceil((there.sensitivity + 2 * there.pad) / GRID) + 1


def _with_subset(facts: Facts, tape: Tape) -> Facts:
    size = round(tape.rate * facts.n)
    return Facts(
        facts.n, facts.levels, facts.test, facts.alpha, size, facts.record, facts.map_levels
    )


def _margins_moved(first: list[np.ndarray], second: list[np.ndarray]) -> int:
    if not first or len(first) != len(second):
        return 0
    here, there = np.concatenate(first), np.concatenate(second)
    n = min(len(here), len(there))
    return int(np.abs(np.rint(here[:n] / GRID) - np.rint(there[:n] / GRID)).max(initial=0))


def _row_faults(row: Any, facts: Facts, tape: Tape) -> Iterator[str]:
    """What of an event is not as the table, the noise or the price formula says."""
    calls = [call for call in tape.calls.get(row["index"], ()) if call[0] != "subset"]
    scales = list(dict.fromkeys(call[1] for call in calls))
    if "law" not in row:
        yield "does not say what its price follows from"
        return
    if row["law"] != "failure probability" and (
        not scales or [float(s) for s in row["scales"]][: len(scales)] != scales
    ):
        yield f"states the scales {row['scales']}, and the noise had {scales}"
    if row["rate"] < 1 and (
        drawn := [call[1] for call in tape.calls.get(row["index"], ()) if call[0] == "subset"]
    ) != [row["rate"]]:
        yield f"is priced for a subset of {row['rate']:.3g} of the records, and {drawn} were drawn"
    price = price_again(row)
    if price.epsilon > row.get("epsilon", math.inf) * (1 + 1e-9) or price.rho > row.get(
        "rho", math.inf
    ) * (1 + 1e-9):
        yield (
            f"has the price {row.get('epsilon')}, {row.get('rho')}, and its scale gives "
            f"{price.epsilon}, {price.rho}"
        )
    there = stated(
        row["label"], _with_subset(facts, tape) if tape.rate < 1 else facts, row["dimension"]
    )
    if there is None or row["law"] == "failure probability":
        return
    law = there.law
    if "gdp_rho" in row:  # of a ledger with Gaussian accounting
        law = law.replace("discrete Gaussian", "rounded Gaussian")
        if price.gdp_rho > float(row["gdp_rho"]) * (1 + 1e-9):
            yield f"is counted as {row['gdp_rho']} of GDP, and its scale gives {price.gdp_rho}"
    # "discrete": of a mechanism that has Laplace or Gaussian noise
    rounded = law == "discrete" and "gdp_rho" in row and row["law"] == "rounded Gaussian"
    if not (rounded or row["law"].startswith(law)):
        yield f"has the law {row['law']}, not {law}"
    if not math.isnan(there.sensitivity) and not there.sensitivity * (1 - 1e-6) <= row[
        "sensitivity"
    ] <= there.sensitivity * (1 + 2e-3):
        yield (
            f"claims the sensitivity {row['sensitivity']:.9g}, and the table says "
            f"{there.sensitivity:.9g}"
        )
    if not row["pad"] >= there.pad * (1 - 1e-9) or (there.integral and not row["integral"]):
        yield (
            f"has the pad {row['pad']:g} (integers: {row['integral']}), and the table says "
            f"{there.pad:g} ({there.integral})"
        )
