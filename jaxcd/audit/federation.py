"""Audits of releases of several sites: the aggregated view of neighbours against the claim.

Whole runs are made with noise that is zero and written down, so that what the coordinator learns
beside the noise is exact.  The noise that hides it is that of the sites which are there and silent;
its law is computed by convolution from what each of them drew, and gives the privacy loss itself,
without a bound.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import special

import jaxcd
from jaxcd.audit.findings import Checks, Finding
from jaxcd.audit.laws import epsilon_at_delta, fits
from jaxcd.federated import Coordinator, Federation, LocalLine, Message, Site
from jaxcd.federated.masks import Masks
from jaxcd.privacy import NoiseSampler, NoiseSource, SecureNoise
from jaxcd.privacy.shares import gaussian_share, laplace_share, summed_distance

__all__ = ["FEDERATION"]

_LEVELS = (2, 2)
_ROWS = list(itertools.product(*map(range, _LEVELS)))
_DOMAIN = jaxcd.Domain({name: jaxcd.Categorical((0, 1)) for name in "ab"})
#: sites, absent, colluding
_CASES = ((4, 0, 0), (4, 1, 0), (4, 0, 1), (5, 1, 1), (6, 2, 2))


class _Written(NoiseSource):
    """Zero noise; keeps which shares were drawn."""

    def __init__(self) -> None:
        self.drawn: list[tuple[str, float, int]] = []

    @property
    def secure(self) -> bool:
        """False: it is none."""
        return False

    def start(self) -> NoiseSampler:
        """A sampler that writes here."""
        return _Sampler(self.drawn)


class _Sampler(NoiseSampler):
    def __init__(self, drawn: list[tuple[str, float, int]]) -> None:
        self._drawn = drawn

    @property
    def secure(self) -> bool:
        return False

    def _zeros(self, law: str, scale: float, parts: int, size: int) -> np.ndarray:
        self._drawn.append((law, scale, parts))
        return np.zeros(size, dtype=np.int64)

    def polya(self, scale: float, parts: int, size: int, *, index: int) -> np.ndarray:
        return self._zeros("polya", scale, parts, size)

    def discrete_gaussian(self, sigma: float, size: int, *, index: int) -> np.ndarray:
        return self._zeros("gaussian", sigma, 1, size)

    def _no_share(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("a site draws shares of Laplace and of Gaussian noise only")

    discrete_laplace = geometric = subset = gumbel_max = _no_share  # type: ignore[assignment]


def polya_law(scale: float, shape: float, reach: int) -> np.ndarray:
    """P[X - Y = k], k = -reach .. reach, for independent negative binomials of this shape."""
    k = np.arange(4 * reach + 1)
    one = np.exp(
        special.gammaln(k + shape)
        - special.gammaln(k + 1)
        - special.gammaln(shape)
        + shape * math.log(-math.expm1(-1 / scale))
        - k / scale
    )
    return np.array([one[abs(d) :] @ one[: len(one) - abs(d)] for d in range(-reach, reach + 1)])


def _run(
    rows: list[np.ndarray], kind: Any, budget: jaxcd.Budget, absent: int, colluding: int
) -> tuple[np.ndarray, list[_Written], Any]:
    """What the coordinator sees beside the noise, and what each site drew; the last sites are
    absent.
    """
    names = tuple(f"s{place}" for place in range(len(rows)))
    federation = Federation(names, budget, dropouts=absent, colluding=colluding)
    seen: list[np.ndarray] = []
    noises = [_Written() for _ in names]
    lines = {}
    for place, (name, part) in enumerate(zip(names, rows, strict=True)):
        data = jaxcd.Dataset.from_codes(part.astype(np.int32), domain=_DOMAIN)
        site = Site(name, data, federation, noise=noises[place])
        lines[name] = LocalLine(site.answer if place < len(rows) - absent else _deaf(site))
    coordinator = Coordinator(federation, _DOMAIN, lines, timeout=1.0)
    bought = coordinator.release(kind, noise=noises[0])
    if bought.kind == "histogram":
        seen.append(bought.values.ravel())
    else:
        seen += [bought.interactions[s].ravel() for s in sorted(bought.interactions)]
    return np.concatenate(seen), noises, bought


def _deaf(site: Site) -> Any:
    """A site that joins, and then does not answer any more."""
    return lambda content: site.answer(content) if Message.decode(content).round < 0 else None


def _tables(rng: np.random.Generator, n_sites: int) -> list[np.ndarray]:
    return [rng.integers(0, 2, (12, 2)) for _ in range(n_sites)]


def _neighbours(quick: bool) -> Iterator[Finding]:
    """One row of the first site replaced by each other row, with absent and colluding sites: the
    exact loss of what is seen, less what the colluding sites know.
    """
    rng = np.random.default_rng(0)
    for n_sites, absent, colluding in _CASES[:3] if quick else _CASES:
        words = f"{n_sites} sites, {absent} absent, {colluding} collude"
        tables = _tables(rng, n_sites)
        silent = n_sites - absent - colluding  # the first ones
        for kind, budget in (
            (jaxcd.Histogram(), jaxcd.Budget(1.0)),
            (jaxcd.Marginals(), jaxcd.Budget(1.0, 1e-6)),
        ):
            first, noises, bought = _run(tables, kind, budget, absent, colluding)
            claimed, worst = 0.0, 0.0
            for row in _ROWS:
                other = [tables[0].copy(), *tables[1:]]
                other[0][0] = row
                second, _, _ = _run(other, kind, budget, absent, colluding)
                drawn = [noise.drawn for noise in noises[:silent]]
                (charge,) = bought.charges[:1]
                moved = second - first
                if bought.kind == "histogram":
                    claimed = float(charge["epsilon"])
                    scale, shape = drawn[0][0][1], sum(1 / each[0][2] for each in drawn)
                    law = np.log(polya_law(scale, shape, 60))
                    # every cell by itself: the largest ratio between its law and that moved
                    loss = sum(
                        float(np.abs(law[step:] - law[: len(law) - step]).max())
                        for step in (abs(int(m)) for m in moved)
                        if step
                    )
                else:
                    claimed = float(charge["rho"])
                    steps = np.rint(moved * 2.0**20)
                    share = min(each[0][1] for each in drawn)
                    sigma = math.sqrt(sum(each[0][1] ** 2 for each in drawn))
                    apart = summed_distance(share, len(drawn)) * math.sqrt(len(steps))
                    loss = (float(np.linalg.norm(steps)) / sigma + 2 * apart) ** 2 / 2
                worst = max(worst, loss)
            name = type(kind).__name__
            yield Finding.of(
                "aggregated view", f"{name}, {words}", claimed=claimed, found=worst, least=0.9
            )


def _sums(quick: bool) -> Iterator[Finding]:
    """Without noise the sum is that of the rows of the sites that answered: masks cancel."""
    rng = np.random.default_rng(1)
    for n_sites, absent, colluding in _CASES[:2]:
        tables = _tables(rng, n_sites)
        wrong: tuple[str, ...] = ()
        try:
            seen, _, _ = _run(tables, jaxcd.Histogram(), jaxcd.Budget(1.0), absent, colluding)
        except jaxcd.errors.JaxcdError as error:
            wrong = (str(error),)
        else:
            rows = np.concatenate(tables[: n_sites - absent])
            counts = np.bincount(rows @ (2, 1), minlength=4)
            if not np.array_equal(seen, counts):
                wrong = (f"the sum is {seen.tolist()}, and the rows are {counts.tolist()}",)
        yield Finding("masks", f"cancel: {n_sites} sites, {absent} absent", 1.0, 0.0, wrong)


def _hidden(quick: bool) -> Iterator[Finding]:
    """What one site sends has fair bits, also against itself in another round; and sums of some
    sites have.
    """
    names, n = ("a", "b", "c"), 2_000
    masks = {name: Masks(name, "run") for name in names}
    for each in masks.values():
        each.meet({name: other.public_key for name, other in masks.items()})
    zeros = np.zeros(n, dtype=np.int64)
    sent = {name: [masks[name].hide(zeros, r, 64) for r in range(2)] for name in names}
    told = {name: _without_own(masks[name], sent[name], n) for name in names}
    views = {
        "one site": sent["a"][0],
        "one site, its own key told": told["a"][0],
        "two rounds of one site": told["a"][0] - told["a"][1],
        "two sites of three": told["a"][0] + told["b"][0],
        "all, before keys are told": sum(both[0] for both in sent.values()),
    }
    for what, seen in views.items():
        share = float(np.unpackbits(np.asarray(seen, dtype=np.uint64).view(np.uint8)).mean())
        far = abs(share - 0.5) / (0.5 / math.sqrt(64 * n))
        wrong = (
            () if far < 7 else (f"a share of {share:.4f} of its bits is set: it shows something",)
        )
        yield Finding("masks", f"hide: {what}", 1.0, 0.0, wrong)


def _without_own(masks: Masks, sent: list[np.ndarray], n: int) -> list[np.ndarray]:
    from jaxcd.federated.masks import stream

    return [part - stream(masks.own_key(r), n, 64) for r, part in enumerate(sent)]


def _told_apart(quick: bool) -> Iterator[Finding]:
    """Sums of secure shares of three silent sites, on values that differ by the sensitivity."""
    runs, epsilon, sampler = 2_000 if quick else 20_000, 1.0, SecureNoise().start()
    pure = laplace_share(n_shares=3, sensitivity=1.0, epsilon=epsilon, dimension=1, label="a")
    rho = 0.5
    gauss = gaussian_share(
        n_shares=3, sensitivity=4.0, rho=rho, dimension=1, label="a", integral=True
    )
    for name, share, step, delta in (("Laplace", pure, 1, 0.0), ("Gaussian", gauss, 4, 1e-3)):
        sums = [sum(share.draw(sampler, runs, index=i) for i in range(3)) + v for v in (0, step)]
        cuts = np.quantile(sums[0], np.linspace(0.05, 0.95, 13))
        found = max(
            epsilon_at_delta(int((sums[0] > c).sum()), int((sums[1] > c).sum()), runs, delta=delta)
            for c in cuts
        )
        claimed = (
            epsilon if not share.is_gaussian else rho + 2 * math.sqrt(rho * math.log(1 / delta))
        )
        yield Finding.of("telling apart", f"a sum of {name} shares", claimed=claimed, found=found)


def _laws(quick: bool) -> Iterator[Finding]:
    """Secure shares of Laplace noise add up to discrete Laplace noise."""
    sampler, n, scale, parts = SecureNoise().start(), 1_500 if quick else 10_000, 2.5, 4
    shares = [sampler.polya(scale, parts, n, index=i) for i in range(parts)]
    total = np.sum(shares, axis=0)
    cells, a = np.arange(-6, 7), math.exp(-1 / scale)
    expected = (1 - a) / (1 + a) * a ** np.abs(cells) * n
    counts = np.array([(total == c).sum() for c in cells])
    yield fits(
        "law of a sum of shares: discrete Laplace",
        np.append(counts, n - counts.sum()),
        np.append(expected, n - expected.sum()),
    )


FEDERATION: Checks = {
    "several sites: aggregated view": _neighbours,
    "several sites: masks cancel": _sums,
    "several sites: masks hide": _hidden,
    "several sites: law of the shares": _laws,
    "several sites: telling sums apart": _told_apart,
}
"""The checks of this file by name; the argument says whether to be quick."""
