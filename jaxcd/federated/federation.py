"""What the owners agree on before a run: who they are, against whom they are protected, and what it
may cost.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxcd.checks import check_listed, counted, hold_python_numbers, is_whole
from jaxcd.data import Domain
from jaxcd.errors import OptionError
from jaxcd.privacy import Accounting, Budget, Relation, Unit

__all__ = ["Federation", "domain_digest"]


@dataclass(frozen=True)
class Federation:
    """Several owners of rows of one domain, and what they assume of each other.

    K - t - d sites carry the whole noise, so there must be at least one; when all K answer, its
    variance is K / (K - t - d) of what one curator would need.

    Args:
        sites: their names, all different; public.
        budget: the price of the whole release for any one row, at whichever site it is.
        dropouts: d: so many of them may fail to answer, and a release is made all the same.
        colluding: t: so many of them may tell the coordinator all that they know.

    Raises:
        OptionError: an argument is out of its range.

    Example:
        >>> import jaxcd
        >>> from jaxcd.federated import Federation
        >>> owners = Federation(("a", "b", "c"), jaxcd.Budget(1.0, 1e-6), dropouts=1)
        >>> owners.n_shares, owners.fewest
        (2, 2)
        >>> print(owners.words)
        one row replaced in one of 3 sites; whoever sees only sums over at least 2 sites
    """

    sites: tuple[str, ...]
    budget: Budget
    dropouts: int = 0
    colluding: int = 0

    def __post_init__(self) -> None:
        hold_python_numbers(self)
        names = check_listed("sites", self.sites)
        object.__setattr__(self, "sites", names)
        if len(names) < 2 or len(set(names)) < len(names) or not all(names):
            raise OptionError(
                f"sites = {names!r}: give two or more different names; one owner alone calls "
                "jaxcd.release"
            )
        if not all(isinstance(name, str) for name in names) or "coordinator" in names:
            raise OptionError(
                f"sites = {names!r}: names are texts, and 'coordinator' is taken; rename it"
            )
        if not isinstance(self.budget, Budget):
            raise OptionError(
                f"budget = {self.budget!r}: owners who need no privacy can pool their rows; use "
                "jaxcd.Budget(1.0, 1e-6)"
            )
        for argument in ("dropouts", "colluding"):
            value = getattr(self, argument)
            if not is_whole(value, 0):
                raise OptionError(
                    f"{argument} = {value!r} is no number of sites; use a whole number from 0"
                )
        if self.n_shares < 1:
            raise OptionError(
                f"dropouts = {self.dropouts}, colluding = {self.colluding}: of {len(names)} sites "
                "none is sure to be there and silent, so nobody's noise could be counted on; "
                "give smaller numbers"
            )
        if self.fewest < 2:
            raise OptionError(
                f"dropouts = {self.dropouts}: a sum of one site is that site's; let at least two "
                "answer"
            )
        if self.budget.relation is not Relation.REPLACE_ONE:
            raise OptionError("budget: over several sites its relation must be replace-one")
        if self.budget.unit is not Unit.ROW:
            raise OptionError(
                "budget: unit='person' is not proved for several sites, where a person may be at "
                "two; use unit='row' with max_rows_per_person=k"
            )
        object.__setattr__(self, "budget", self.budget.settled(Accounting.ZCDP))
        if self.budget.accounting is not Accounting.ZCDP:
            raise OptionError(
                "budget: sums of discrete Gaussian shares are known by their zCDP; use "
                "accounting=Accounting.ZCDP"
            )

    @property
    def n_shares(self) -> int:
        """h = K - t - d: the sites whose shares carry the whole noise."""
        return len(self.sites) - self.dropouts - self.colluding

    @property
    def fewest(self) -> int:
        """K - d: fewer sites than these give no sum."""
        return len(self.sites) - self.dropouts

    @property
    def words(self) -> str:
        """Unit, relation and adversary."""
        many = f"{self.budget.max_rows_per_person} rows" if self._rows > 1 else "one row"
        knows = f"{counted(self.colluding, 'site')} {'knows' if self.colluding == 1 else 'know'}"
        told = f", with all that {knows}" if self.colluding else ""
        return (
            f"{many} replaced in {'any' if self._rows > 1 else 'one'} of {len(self.sites)} sites; "
            f"whoever sees only sums over at least {self.fewest} sites{told}"
        )

    @property
    def _rows(self) -> int:
        return self.budget.max_rows_per_person

    def to_json(self) -> dict[str, Any]:
        """What a message says of it."""
        return {
            "sites": list(self.sites),
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "max_rows_per_person": self.budget.max_rows_per_person,
            "dropouts": self.dropouts,
            "colluding": self.colluding,
        }

    def differs(self, entry: Mapping[str, Any]) -> list[str]:
        """What another's federation says otherwise: names of its parts."""
        own = self.to_json()
        return [name for name in own if own[name] != entry.get(name)]


def domain_digest(domain: Domain) -> str:
    """Equal for equal domains: names in order, levels, missing cells, interventions."""
    text = json.dumps(domain.to_json_dict(), ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
