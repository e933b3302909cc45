"""What the deciders that pay by the round share: how many rounds, and what one may cost."""

from __future__ import annotations

import math

from jaxcd.errors import OptionError
from jaxcd.privacy import Ledger, NoPrivacy, rho_to_pure, split

__all__ = ["check_count", "default_rounds", "equal_pure_events"]


def default_rounds(n_variables: int) -> int:
    """p (p - 1) / 2 - p, the pairs that a graph of average degree 2 does not join, and at least half of all pairs (p <= 4).

    Running out of rounds is much worse than more noise a round (PRIVACY.md N.3).
    """
    n_pairs = n_variables * (n_variables - 1) // 2
    return max(n_pairs - n_variables, -(-n_pairs // 2))


def check_count(argument: str, value: int | None) -> None:
    """Raises OptionError unless value is None or a positive integer."""
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or not value >= 1):
        raise OptionError(f"{argument} = {value!r} is not a positive whole number; give one, or None for the default")


def equal_pure_events(ledger: Ledger, n_events: int) -> float:
    """The largest epsilon such that ``n_events`` pure events of it fit into what is left of the budget.

    The larger of epsilon / n (pure composition) and sqrt(2 rho / n) (zCDP), each rounded down; infinite without privacy.
    """
    if isinstance(ledger.budget, NoPrivacy):
        return math.inf
    pure = split(ledger.remaining_epsilon, [1.0] * n_events)[0] if ledger.remaining_epsilon > 0 else 0.0
    if ledger.remaining_rho > 0:
        pure = max(pure, rho_to_pure(split(ledger.remaining_rho, [1.0] * n_events)[0]))
    return pure
