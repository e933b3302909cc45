"""A site's own process: reads its own file, and nobody else does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import jax

from jaxcd.data import Domain
from jaxcd.data.readers import read_csv
from jaxcd.data.sites import with_site
from jaxcd.federated.federation import Federation
from jaxcd.federated.running import site_noise
from jaxcd.federated.site import Site
from jaxcd.privacy import LedgerFile, SimulatedNoise

__all__ = ["SiteFile"]


@dataclass(frozen=True)
class SiteFile:
    """How a process makes its site; called there.

    Args:
        name: of the site.
        path: of its table.
        domain: of the domain file.
        federation: what was agreed on.
        column: of the site's name, or None.
        ledger: of the owner's ledger file, made where there is none; or None.
        seed: of simulated noise, or None for secure noise.
        encoding: of the table, where it is a text.
    """

    name: str
    path: Path
    domain: Path
    federation: Federation
    column: str | None = None
    ledger: Path | None = None
    seed: int | None = None
    encoding: str = "utf-8"

    def __call__(self) -> Site:
        """The site."""
        budget, sites = self.federation.budget, self.federation.sites
        ledger = None
        if self.ledger is not None:
            new = not self.ledger.exists()
            ledger = LedgerFile(
                self.ledger, data_set=self.name if new else None, budget=budget if new else None
            )
        data = read_csv(self.path, domain=Domain.read(self.domain), encoding=self.encoding)
        if self.column is not None:
            data = with_site(data, self.name, sites, column=self.column)
        noise = None if self.seed is None else SimulatedNoise(jax.random.key(self.seed))
        noise_here = site_noise(noise, sites.index(self.name))
        return Site(self.name, data, self.federation, ledger=ledger, noise=noise_here)
