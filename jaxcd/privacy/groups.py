r"""Groups: what a promise about one row says about a person with several, or about a household.

Two data sets that differ in k rows are joined by a chain of k steps that replace one row each.
Along the chain

* an e-DP mechanism is k e-DP,
* a rho-zCDP mechanism is k^2 rho-zCDP (Bun and Steinke 2016, Proposition 1.9: Renyi divergences of
  orders a satisfy D_a(P, R) <= ... <= k^2 rho a for a chain of k steps),
* an (e, d)-DP mechanism is (k e, d (exp(k e) - 1) / (exp(e) - 1))-DP: d grows much faster than k.

*Prices.*  A ledger whose budget names k rows a person admits an event iff the sum of the k e stays
within epsilon, or the sum of the k^2 rho within rho*.  Each event given the past is a valid bound
for neighbours that differ in k rows, by the first two lines; so the ledger's proof holds for these
neighbours as it stands.  The same is said by dividing the budget: epsilon / k and rho* / k^2.

*Statements.* For a run that was kept by (P) sum of e at most E, or (Z) sum of rho at most R, the
same proof with k e and k^2 rho gives, for people with k rows, (max(k E, epsilon(k^2 R, delta)),
delta) with the *same* delta (with Gaussian accounting R is that of GDP, and so is its conversion:
a mu-GDP mechanism is k mu-GDP for a chain of k steps, :mod:`jaxcd.privacy.gdp`). Where R is not
known, the third line is all there is.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any

from ..checks import check_count
from .conversion import rho_to_epsilon
from .gdp import gdp_rho_to_epsilon
from .rounding import round_down, round_up

__all__ = ["group_cost", "group_delta", "share_of_row", "share_of_row_rho"]

_MACHINE = 2.0**-52


def share_of_row(epsilon: float, rows: int) -> float:
    """epsilon / k, rounded down: what pure events may add up to for one row."""
    return epsilon if rows == 1 else round_down(Fraction(epsilon) / rows)


def share_of_row_rho(rho: float, rows: int) -> float:
    """rho / k^2, rounded down: what rhos may add up to for one row."""
    return rho if rows == 1 or math.isinf(rho) else round_down(Fraction(rho) / rows**2)


def group_delta(epsilon: float, delta: float, rows: int) -> float:
    """delta (exp(k epsilon) - 1) / (exp(epsilon) - 1), rounded up; infinity where it is above
    1e300.
    """
    if delta == 0 or rows == 1:
        return delta
    if rows * epsilon > 700:
        return math.inf
    factor = math.expm1(rows * epsilon) / math.expm1(epsilon) if epsilon > 0 else float(rows)
    return delta * factor * (1 + 16 * _MACHINE * (1 + rows * epsilon))


def _no_promise_beyond_floats(value: Fraction) -> float:
    """The number rounded up; infinity beyond the largest float."""
    try:
        return round_up(value)
    except OverflowError:
        return math.inf


def group_cost(cost: Any, rows: int) -> Any:
    """What ``cost`` (a :class:`jaxcd.privacy.PrivacyCost`) says about a person with ``rows`` rows,
    or about ``rows`` people where its unit is a person; the module's docstring has the proof (the
    chain then replaces one person at each step).

    Where the cost knows its rho, epsilon grows and delta stays; else epsilon grows to k epsilon,
    and delta with it (where that is no probability, nothing is guaranteed: epsilon is infinite).
    """
    wanted = check_count("rows", rows, minimum=1, cure="give the number of rows of one person")
    k = -(-wanted // cost.max_rows_per_person)  # so many persons of the promise make one of these
    if k == 1 or math.isinf(cost.epsilon):
        return dataclasses.replace(cost, max_rows_per_person=max(wanted, cost.max_rows_per_person))
    pure = _no_promise_beyond_floats(Fraction(cost.epsilon) * k)
    group = f"{wanted} people" if cost.unit.value == "person" else f"{wanted} rows of one person"
    words = f"{cost.reason}; for {group}"
    if cost.delta == 0:
        return dataclasses.replace(
            cost, epsilon=pure, rho=None, reason=words, max_rows_per_person=wanted
        )
    if cost.rho is not None:
        rho = _no_promise_beyond_floats(Fraction(cost.rho) * k**2)
        convert = gdp_rho_to_epsilon if cost.accounting.value == "gaussian" else rho_to_epsilon
        epsilon = max(pure, convert(rho, cost.delta))
        return dataclasses.replace(
            cost, epsilon=epsilon, rho=rho, reason=words, max_rows_per_person=wanted
        )
    delta = group_delta(cost.epsilon, cost.delta, k)
    if delta < 1:
        return dataclasses.replace(
            cost, epsilon=pure, delta=delta, reason=words, max_rows_per_person=wanted
        )
    nothing = f"nothing is guaranteed for {group}: delta would be above 1"
    return dataclasses.replace(
        cost, epsilon=math.inf, proven=False, reason=nothing, max_rows_per_person=wanted
    )
