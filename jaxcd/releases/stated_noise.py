"""Whether the noise that a release's file states is what its price has bought."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from jaxcd.errors import FormatError, OptionError
from jaxcd.privacy import PrivacyCost
from jaxcd.privacy.budget import Accounting
from jaxcd.privacy.conversion import epsilon_to_rho
from jaxcd.privacy.gdp import epsilon_to_gdp_rho
from jaxcd.privacy.groups import share_of_row, share_of_row_rho
from jaxcd.privacy.repricing import TOLERANCE, price_again

__all__ = ["check_size", "check_stated_noise"]

# No draw of any law is larger than so many of its standard deviations.
_FAR = 1_000.0


def check_size(name: str, values: np.ndarray, *, rows: float, deviation: float) -> None:
    """Raises OptionError for released numbers larger than the rows and the noise make them.

    Args:
        name: of the numbers.
        values: finite.
        rows: the most that all rows give to one number; twice of that passes.
        deviation: the standard deviation of the noise on a number.
    """
    largest = float(np.abs(values).max(initial=0.0))
    if not largest <= 2 * rows + _FAR * deviation:
        raise OptionError(f"{name}: {largest:.3g} is more than so many rows and their noise make")


def check_stated_noise(
    cost: PrivacyCost,
    charges: Sequence[Mapping[str, object]],
    least_variance: Callable[[float, float], tuple[float, float] | None],
) -> None:
    """Refuses a file that states less noise than the cost that it states has bought.

    Args:
        cost: the guarantee.
        charges: the ledger's rows.
        least_variance: of epsilon and rho for one row: the smallest variance of the noise on a
            released number, and a bound below it for any release of this price; None where nothing
            was released.

    Raises:
        FormatError: an event or a number has less noise than its price, or the events cost more
            than the whole.
    """
    if math.isinf(cost.epsilon):
        return
    gaussian = cost.accounting is Accounting.GAUSSIAN
    for row in charges:
        if "law" not in row:  # a file of version 1
            continue
        price, stated = price_again(row), (float(str(row["epsilon"])), float(str(row["rho"])))
        if (
            price.epsilon > stated[0] * (1 + TOLERANCE)
            or price.rho > stated[1] * (1 + TOLERANCE)
            or (gaussian and price.gdp_rho > float(str(row["gdp_rho"])) * (1 + TOLERANCE))
        ):
            raise FormatError(f"event {row['label']!r} has less noise than it was charged for")
    epsilon, delta, rows = cost.epsilon, cost.delta, cost.max_rows_per_person
    room = 1 + 1e-6
    epsilons, rhos = (
        [float(str(row[name])) for row in charges]
        for name in ("epsilon", "gdp_rho" if gaussian else "rho")
    )
    convert = epsilon_to_gdp_rho if gaussian else epsilon_to_rho
    rho = convert(epsilon, delta) if delta > 0 else 0.0
    if cost.rho is not None:  # what holds for groups follows from it
        rho = min(rho, cost.rho)
    if sum(epsilons) * rows > epsilon * room and sum(rhos) * rows**2 > rho * room:
        raise FormatError("the events add up to more than the cost")
    least = least_variance(share_of_row(epsilon, rows) * room, share_of_row_rho(rho, rows) * room)
    if least is not None and not least[0] >= least[1] * (1 - 1e-6):
        raise FormatError(
            f"the noise has the variance {least[0]:.6g}, and the cost has bought no less than "
            f"{least[1]:.6g}"
        )
