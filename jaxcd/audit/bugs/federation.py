"""Bugs where several sites answer together: shares of the noise, and masks."""

from __future__ import annotations

from jaxcd.audit.planting import Bug

__all__ = ["BUGS"]

BUGS: tuple[Bug, ...] = (
    Bug(
        "share-of-all-sites",
        "federated.site:Site._with_share",
        "self._federation.n_shares",
        "len(self._federation.sites)",
        "several sites: aggregated view",
    ),
    Bug(
        "share-colluding",
        "federated.federation:Federation.n_shares",
        "- self.dropouts - self.colluding",
        "- self.dropouts",
        "several sites: aggregated view",
    ),
    Bug(
        "share-too-small",
        "privacy.shares:NoiseShare.draw",
        "discrete_gaussian(self.scale, size, index=index)",
        "discrete_gaussian(0.9 * self.scale, size, index=index)",
        "several sites: aggregated view",
    ),
    Bug(
        "polya-parts",
        "privacy.shares:NoiseShare.draw",
        "noise.polya(self.scale, self.n_shares,",
        "noise.polya(self.scale, self.n_shares + 1,",
        "several sites: aggregated view",
    ),
    Bug(
        "polya-biased",
        "privacy.polya:_accepted",
        "np.uint64((j - 1) * parts + 1)",
        "np.uint64((j - 1) * parts + 2)",
        "several sites: law of the shares",
    ),
    Bug(
        "masks-do-not-cancel",
        "federated.masks:Masks.hide",
        "total + mask if self._name < other else total - mask",
        "total + mask",
        "several sites: masks cancel",
    ),
    Bug(
        "masks-of-all-rounds",
        "federated.masks:Masks.pair_key",
        "self._pairs[other] + words",
        "self._pairs[other]",
        "several sites: masks hide",
    ),
    Bug(
        "masks-half",
        "federated.masks:stream",
        "& _mask(bits)",
        "& _mask(bits // 2)",
        "several sites: masks hide",
    ),
)
