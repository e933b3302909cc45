"""``jaxcd ledger``: one total for everything that is ever published about a data set."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from jaxcd.cli.shared import (
    AsJson,
    TotalUnit,
    accounting_option,
    argument,
    number_option,
    option,
    tell,
    whole_option,
)
from jaxcd.errors import OptionError

if TYPE_CHECKING:
    import jaxcd

__all__ = ["ledger"]


def ledger(
    file: Annotated[Path, argument("Ledger file; made if --data-set and --epsilon are given.")],
    data_set: Annotated[str | None, option("To make one: the owner's name of the data.")] = None,
    epsilon: Annotated[
        float | None, number_option("To make one: the total epsilon, positive.")
    ] = None,
    delta: Annotated[
        float | None, number_option("To make one: the total delta. (Default: 0.)")
    ] = None,
    max_rows_per_person: Annotated[
        int | None, whole_option("To make one: the most rows that one person has. (Default: 1.)")
    ] = None,
    accounting: Annotated[str | None, accounting_option("gaussian")] = None,
    unit: TotalUnit = None,
    as_json: AsJson = False,
) -> None:
    """Show a ledger file (what was spent on a data set, by which analyses, and what is left), or
    make one.
    """
    import jaxcd
    from jaxcd.cli import options

    making = {
        "--data-set": data_set,
        "--epsilon": epsilon,
        "--delta": delta,
        "--max-rows-per-person": max_rows_per_person,
        "--accounting": accounting,
        "--unit": unit,
    }
    given = [option for option, value in making.items() if value is not None]
    if file.exists():
        if given:
            raise OptionError(
                f"{', '.join(given)}: file {str(file)!r} exists, and its total is fixed; drop "
                "them, or give another file"
            )
        found = jaxcd.LedgerFile(file)
    else:
        if data_set is None or epsilon is None:
            raise OptionError(
                f"there is no ledger {str(file)!r}; give --data-set NAME and --epsilon E (and "
                "--delta D) to make one, or correct the path"
            )
        total = options.budget(
            epsilon=epsilon,
            delta=delta,
            no_privacy=False,
            simulated_noise=False,
            max_rows_per_person=max_rows_per_person,
            accounting=accounting,
            unit=unit,
        )
        assert isinstance(total, jaxcd.Budget)
        found = jaxcd.LedgerFile(file, data_set=data_set, budget=total)
    if as_json:
        print(json.dumps(_content(found), indent=2, allow_nan=False))
    else:
        _show(found)


def _analyses(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The charges of each analysis together, in order."""
    found: dict[str, dict[str, Any]] = {}
    for record in records:
        name = str(record.get("analysis", "")) or "(charged by itself)"
        entry = found.setdefault(
            name,
            {
                "analysis": name,
                "first": record["time"],
                "n_charges": 0,
                "epsilon": 0.0,
                "rho": 0.0,
                "secure": True,
                "claims": [],
            },
        )
        entry["n_charges"] += 1
        entry["epsilon"] += float(record["epsilon"])
        entry["rho"] += float(record.get("gdp_rho", record["rho"]))
        entry["secure"] &= bool(record.get("secure", True))
        entry["claims"] = sorted({*entry["claims"], *record.get("claims", ())})
    return list(found.values())


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _left(remaining: float, total: float) -> float:
    """Without what the rounding of sums leaves."""
    return remaining if remaining > 1e-9 * total else 0.0


def _content(found: jaxcd.LedgerFile) -> dict[str, Any]:
    from jaxcd.privacy.budget import unit_words

    analyses = [
        {**entry, "epsilon": _finite(entry["epsilon"]), "rho": _finite(entry["rho"])}
        for entry in _analyses(found.records)
    ]
    content = found.certificate()
    return {
        "data_set": found.data_set,
        "guarantee": content["guarantee"],
        "spent": content["spent"],
        # of several rows of a person, charges and what is left count for one
        "prices_for": unit_words(found.budget.unit),
        "left": {"epsilon": found.remaining_epsilon, "rho": found.remaining_rho},
        "analyses": analyses,
    }


def _show(found: jaxcd.LedgerFile) -> None:
    from jaxcd.checks import counted
    from jaxcd.privacy.budget import Unit, unit_words
    from jaxcd.privacy.rounding import left_in_words, promise_in_words, spent_in_words

    charges, analyses = counted(len(found.records), "charge"), _analyses(found.records)
    person = each = ""
    if (rows := found.budget.max_rows_per_person) > 1:
        person, each = f", for {unit_words(Unit.ROW, rows)}", f", for {unit_words(Unit.ROW)}"
    epsilon = _left(found.remaining_epsilon, found.guarantee.epsilon)
    rho = _left(found.remaining_rho, found.guarantee.rho or 0.0)
    lines = [
        ("data set", found.data_set),
        ("total", str(found.guarantee)),
        (
            "spent",
            f"{promise_in_words(found.spent.epsilon, found.spent.delta)} in {charges} of "
            f"{'1 analysis' if len(analyses) == 1 else f'{len(analyses)} analyses'}{person}",
        ),
        (
            "left",
            # without a delta rho has no room at any time, which does not mean that it is used up
            f"{left_in_words(epsilon)} of epsilon for pure events"
            + (f", {left_in_words(rho)} of rho for all together" if found.guarantee.delta else "")
            + each
            if epsilon or rho
            else "nothing",
        ),
    ]
    tell(*(f"{label:<11}{words}" for label, words in lines))
    for entry in analyses:
        price = (
            f"epsilon {spent_in_words(entry['epsilon'])}, rho {spent_in_words(entry['rho'])}"
            if math.isfinite(entry["epsilon"])
            else f"rho {spent_in_words(entry['rho'])}"
        )
        notes = each + ("" if entry["secure"] else ", simulated noise")
        notes += f", claims of {', '.join(entry['claims'])}" if entry["claims"] else ""
        charged = f"{entry['analysis']}: {counted(entry['n_charges'], 'charge')}, {price}{notes}"
        tell(f"  {entry['first']}  {charged}")
