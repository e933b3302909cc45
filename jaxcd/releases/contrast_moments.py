r"""A release of contrast second moments: all pairwise tables at once, at the smallest L2
sensitivity.

Released under zCDP: sum_i phi_j phi_l^T for all pairs and w sum_i phi_j for all columns
(:mod:`jaxcd.ops.moments`), each entry with Gaussian noise of variance sigma^2 = L2^2 / (2 rho).
Everything below is post-processing of these numbers: the covariance C_jl = M_jl - m_j m_l^T / n,
its null moments with the noise in them, and an independence test for every pair.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations

import networkx as nx
import numpy as np

from jaxcd.citests.covariance_norm import critical_constant
from jaxcd.ops import moments, tails
from jaxcd.privacy import Accountant, gaussian
from jaxcd.queries import Session

__all__ = ["ContrastMoments", "release_contrast_moments"]


@dataclass(frozen=True)
class ContrastMoments:
    """Noisy contrast moments of all columns; public.

    With phi_j the contrast of column j, of length k_j - 1.

    Args:
        n_samples: the number of rows (public).
        cardinalities: k_j, the number of levels of each column.
        means: for each j the noisy sum_i phi_j, float64 (k_j - 1,).
        products: for each pair j < l the noisy sum_i phi_j phi_l^T.
        sigma: standard deviation of the noise on each entry of the products.
        mean_sigma: standard deviation of the noise on each entry of the means.
    """

    n_samples: int
    cardinalities: tuple[int, ...]
    means: tuple[np.ndarray, ...]
    products: dict[tuple[int, int], np.ndarray]
    sigma: float
    mean_sigma: float

    def covariance(self, x: int, y: int) -> np.ndarray:
        """C_xy = M_xy - m_x m_y^T / n, in records, (k_x - 1, k_y - 1)."""
        product = self.products[x, y] if x < y else self.products[y, x].T
        return product - np.outer(self.means[x], self.means[y]) / self.n_samples

    def scatter(self, x: int) -> np.ndarray:
        """n Cov(phi_x), (k_x - 1, k_x - 1), from the noisy margin, negative frequencies clipped at
        0 and renormalised.
        """
        k = self.cardinalities[x]
        basis = moments.contrast_basis(k)
        p = np.maximum(basis @ self.means[x] / self.n_samples + 1 / k, 0)
        p = p / p.sum()
        found: np.ndarray = self.n_samples * basis.T @ (np.diag(p) - np.outer(p, p)) @ basis
        return found

    def null_moments(self, x: int, y: int) -> tuple[float, float]:
        r"""Mean V of |C|_F^2 under independence, and W with variance 2 W^2, noise included.

        V = tr A tr B / n + sigma^2 d + s^2 (|m_x / n|^2 d_y + |m_y / n|^2 d_x),  W = |A|_F |B|_F /
        n + sigma^2 sqrt(d) + s^2 (|m_x / n|^2 sqrt(d_y) + |m_y / n|^2 sqrt(d_x)), with A, B the
        scatters, d = d_x d_y, d_j = k_j - 1, s = mean_sigma.

        Source:
            PRIVACY.md N.7.
        """
        a, b, n = self.scatter(x), self.scatter(y), self.n_samples
        dx, dy = len(self.means[x]), len(self.means[y])
        # The noise in the mean itself is removed from |m|^2, which would otherwise count it twice.
        fx = max(float(self.means[x] @ self.means[x]) - dx * self.mean_sigma**2, 0.0) / n**2
        fy = max(float(self.means[y] @ self.means[y]) - dy * self.mean_sigma**2, 0.0) / n**2
        s2, m2 = self.sigma**2, self.mean_sigma**2
        mean = np.trace(a) * np.trace(b) / n + s2 * dx * dy + m2 * (fx * dy + fy * dx)
        spread = np.linalg.norm(a) * np.linalg.norm(b) / n + s2 * math.sqrt(dx * dy)
        spread += m2 * (fx * math.sqrt(dy) + fy * math.sqrt(dx))
        return float(mean), float(spread)

    def margin(self, x: int, y: int, *, alpha: float) -> float:
        """|C_xy|_F - sqrt(V + c W): positive iff x and y are dependent beyond sampling and noise at
        level alpha.
        """
        if min(len(self.means[x]), len(self.means[y])) == 0:
            return -1.0  # a column with one level is independent of everything
        mean, spread = self.null_moments(x, y)
        return float(
            np.linalg.norm(self.covariance(x, y))
            - math.sqrt(mean + critical_constant(alpha) * spread)
        )

    def favours_collider(self, x: int, z: int, y: int, *, sigmas: float = 1.0) -> bool:
        r"""Whether x - z - y, with x and y marginally independent, is a collider rather than lost
        in the noise.

        Were z not a collider, x and y would depend through it: E = C_xz Cov_z^+ C_zy, to first
        order in the dependence.  The log likelihood ratio between "covariance 0" and "covariance E"
        of the noisy C_xy, whose entries scatter with variance about W, is (|E|^2 / 2 - <E, C_xy>) /
        W; the collider is favoured where |E|^2 / 2 - <E, C_xy> > sigmas |E| sqrt(W).  Source:
        PRIVACY.md O, step 4a.
        """
        if min(len(self.means[v]) for v in (x, z, y)) == 0:
            return False
        through = self._through(x, z, y)
        size = float(np.linalg.norm(through))
        _, spread = self.null_moments(x, y)
        evidence = size**2 / 2 - float(np.sum(through * self.covariance(x, y)))
        return evidence > sigmas * size * math.sqrt(spread)

    def _through(self, x: int, z: int, y: int) -> np.ndarray:
        """E = C_xz Cov_z^+ C_zy: what x and y would share through z."""
        inverse = np.linalg.pinv(self.scatter(z), hermitian=True)
        return np.asarray(self.covariance(x, z) @ inverse @ self.covariance(z, y))

    def opened_direction(self, x: int, z: int, y: int) -> tuple[np.ndarray, float]:
        r"""Where conditioning on a collider x -> z <- y shows, and how far chance goes there.

        With E = C_xz Cov_z^+ C_zy, what x and y would share if z were no collider, the dependence
        that a collider opens points to -E (for linear Gaussian x, y and z exactly so; for other
        mechanisms it nearly does: what raises z in place of x makes x less likely).  Returns U =
        -H_x E H_y^T / |E|_F, float64 (k_x, k_y), of Frobenius norm 1 (0 where E = 0), and the
        standard deviation sqrt(tr(E^T A E B) / n) / |E|_F of <U, C_xy> without dependence, A and B
        the scatters.
        """
        kx, ky = self.cardinalities[x], self.cardinalities[y]
        through = self._through(x, z, y)
        size = float(np.linalg.norm(through)) if through.size else 0.0
        if not size > 0:
            return np.zeros((kx, ky)), 0.0
        unit = through / size
        variance = (
            float(np.trace(unit.T @ self.scatter(x) @ unit @ self.scatter(y))) / self.n_samples
        )
        return -moments.contrast_basis(kx) @ unit @ moments.contrast_basis(ky).T, math.sqrt(
            max(variance, 0.0)
        )

    def table(self, x: int, y: int) -> np.ndarray:
        """The joint frequencies of x and y, (k_x, k_y): read off the moments, negative cells
        clipped at 0, renormalised.
        """
        kx, ky = self.cardinalities[x], self.cardinalities[y]
        hx, hy = moments.contrast_basis(kx), moments.contrast_basis(ky)
        product = self.products[x, y] if x < y else self.products[y, x].T
        table = hx @ product @ hy.T + self.n_samples / (kx * ky)
        table += (hx @ self.means[x])[:, None] / ky + (hy @ self.means[y])[None, :] / kx
        table = np.maximum(table, 0)
        found: np.ndarray = table / table.sum()
        return found

    def mutual_information(self, x: int, y: int) -> float:
        """Mutual information of x and y in nats, of :meth:`table`."""
        p = self.table(x, y)
        independent = np.outer(p.sum(axis=1), p.sum(axis=0))
        present = p > 0
        return float(np.sum(p[present] * np.log(p[present] / independent[present])))

    def spanning_forest(
        self,
        *,
        alpha: float,
        absent: Collection[tuple[int, int]] = (),
        kept: Collection[tuple[int, int]] = (),
    ) -> frozenset[tuple[int, int]]:
        """The maximum spanning forest by mutual information of the pairs that are dependent at
        level alpha: pairs (x, y), x < y.

        If the true graph is a tree, these are its edges (Chow and Liu 1968); otherwise nearly all
        of them are edges (PRIVACY.md N.8).

        Args:
            alpha: of the test.
            absent: pairs that are known to be no edges.
            kept: pairs that are known to be edges, which come first.
        """
        graph = nx.Graph()
        graph.add_edges_from(sorted(kept), weight=math.inf)
        for x, y in self.products:
            if (x, y) in kept or (x, y) in absent:
                continue
            if self.margin(x, y, alpha=alpha) > 0:
                graph.add_edge(x, y, weight=self.mutual_information(x, y))
        return frozenset((min(e), max(e)) for e in nx.maximum_spanning_edges(graph, data=False))

    def log_pvalue(self, x: int, y: int) -> float:
        """Log p-value of |C_xy|_F^2 against its null, by Satterthwaite's chi-square."""
        if min(len(self.means[x]), len(self.means[y])) == 0:
            return 0.0
        mean, spread = self.null_moments(x, y)
        squared = float(np.linalg.norm(self.covariance(x, y)) ** 2)
        return float(
            tails.chi_square_log_sf(
                np.asarray(squared * mean / spread**2), np.asarray((mean / spread) ** 2)
            )
        )


def release_contrast_moments(
    session: Session, accountant: Accountant, *, rho: float, mean_weight: float = 1.0, label: str
) -> ContrastMoments:
    r"""Releases the contrast moments of all columns.

    Args:
        rho: the zCDP price, positive.
        mean_weight: w > 0; a larger w makes the margins more and the products less precise.
        session: of the data.
        accountant: of the run.
        label: public words for the report.

    Returns:
        The noisy moments.

    Raises:
        BudgetExhausted: rho does not fit.
        DomainError: a column is numeric.

    Guarantee:
        Relation: replace-one; n and the declared levels are public.  Sensitivity:
        :func:`jaxcd.ops.moments.contrast_sensitivity` (L2, over all entries).  Event:
        ``GaussianEvent(rho)``.  Proof: there, and :func:`jaxcd.privacy.gaussian`.
    """
    cardinalities = session.view_cardinalities
    pairs = list(combinations(range(len(cardinalities)), 2))
    shapes = [(cardinalities[j] - 1, cardinalities[k] - 1) for j, k in pairs]
    sizes = [*(a * b for a, b in shapes), *(k - 1 for k in cardinalities)]
    if not sum(sizes):
        empty = {pair: np.zeros(shape) for pair, shape in zip(pairs, shapes, strict=True)}
        return ContrastMoments(
            session.n_samples,
            cardinalities,
            tuple(np.zeros(0) for _ in cardinalities),
            empty,
            0.0,
            0.0,
        )

    sets = [*pairs, *((j,) for j in range(len(cardinalities)))]

    def vector(counts: Sequence[np.ndarray]) -> np.ndarray:
        exact = moments.contrast_moments(dict(zip(sets, counts, strict=True)))
        weights = [mean_weight if len(s) == 1 else 1.0 for s in sets]
        return np.concatenate([w * exact[s].ravel() for w, s in zip(weights, sets, strict=True)])

    sensitivity = moments.contrast_sensitivity(cardinalities, mean_weight)
    noisy = gaussian(
        accountant,
        session.view_counts(sets).map(vector),
        sensitivity=sensitivity,
        rho=rho,
        # Each entry is a sum of at most k products of integers below n with numbers below 1, in
        # float64, times the weight.
        pad=session.n_samples * 2.0**-50 * max(1.0, mean_weight) * (8 + 2 * max(cardinalities)),
        label=label,
    )
    sigma = sensitivity / math.sqrt(2 * rho)
    split = np.split(noisy, np.cumsum(sizes)[:-1])
    return ContrastMoments(
        session.n_samples,
        cardinalities,
        tuple(part / mean_weight for part in split[len(pairs) :]),
        {
            pair: part.reshape(shape)
            for pair, shape, part in zip(pairs, shapes, split, strict=False)
        },
        sigma,
        sigma / mean_weight,
    )
