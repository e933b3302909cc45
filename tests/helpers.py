"""Makers of small data sets, domains, noise and sensitivities that many tests share; commands."""

from __future__ import annotations

import itertools
import json
import math
import shlex
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import strategies as st

import jaxcd
from jaxcd.citests import CITest, Sensitivity
from jaxcd.cli import main
from jaxcd.privacy import NoiseSampler

#: a search by tests without privacy
PLAIN: dict[str, Any] = {"decider": jaxcd.Threshold(), "budget": jaxcd.NO_PRIVACY, "key": None}
#: any seed
SEEDS = st.integers(0, 2**31)


def simulated(seed: Any = 0) -> jaxcd.SimulatedNoise:
    """Noise that repeats."""
    return jaxcd.SimulatedNoise(jax.random.key(seed))


def levelled(*levels: int, name: str = "v", kind: type = jaxcd.Ordinal) -> jaxcd.Domain:
    """v0, v1, ... with levels 0 to k - 1."""
    return jaxcd.Domain({f"{name}{j}": kind(tuple(range(k))) for j, k in enumerate(levels)})


def coded(codes: Any, *levels: int | jaxcd.Domain, **options: Any) -> jaxcd.Dataset:
    """Codes of a domain, or of v0, v1, ... with so many levels."""
    domain = levels[0] if isinstance(levels[0], jaxcd.Domain) else levelled(*levels, **options)
    return jaxcd.Dataset.from_codes(np.asarray(codes).astype(np.int32), domain=domain)


def always_half_or_never(rng: np.random.Generator) -> float:
    return rng.choice([0, 0.5, 1])


def dependent(
    seed: int,
    n: int,
    *levels: int,
    share: Callable[[np.random.Generator], float] = always_half_or_never,
) -> jaxcd.Dataset:
    """Each column a function of two earlier ones in a share of the rows, drawn for each column;
    noise in the others.
    """
    rng = np.random.default_rng(seed)
    codes = np.zeros((n, len(levels)), dtype=np.int32)
    for j, k in enumerate(levels):
        parents = codes[:, rng.permutation(j)[:2]].sum(1) if j else np.zeros(n, dtype=np.int64)
        codes[:, j] = np.where(rng.random(n) < share(rng), parents % k, rng.integers(0, k, n))
    return coded(codes, *levels)


def independent(n: int, *levels: int, seed: int = 0) -> jaxcd.Dataset:
    """Uniform columns that have nothing to do with each other."""
    rng = np.random.default_rng(seed)
    return coded(np.stack([rng.integers(0, k, n) for k in levels], axis=1), *levels)


def numbers(names: Iterable[str] | int, low: Any = None, high: Any = None) -> jaxcd.Domain:
    """Numeric columns of these names (a number: so many, v0, v1, ...), with bounds or without."""
    if isinstance(names, int):
        names = [f"v{j}" for j in range(names)]
    return jaxcd.Domain(dict.fromkeys(names, jaxcd.Numeric(low, high)))


def measured(
    values: Any, low: Any = None, high: Any = None, *, declared: bool = True
) -> jaxcd.Dataset:
    """Numeric columns x0, x1, ..., clipped to their bounds where there are any."""
    names = [f"x{j}" for j in range(np.shape(values)[1])]
    domain = jaxcd.Domain(dict.fromkeys(names, jaxcd.Numeric(low, high)), declared=declared)
    return jaxcd.Dataset.from_array(values, names=names, domain=domain, clip=True)


def sampled(network: str, n: int, seed: int = 0) -> jaxcd.Dataset:
    """Rows of a network."""
    return jaxcd.networks.load(network).sample(n, key=jax.random.key(seed))


class Quick(NoiseSampler):
    """The laws of the samplers to double precision, without their set-up; ``factor`` times the size
    that was asked for.
    """

    def __init__(self, seed: int, factor: float = 1.0) -> None:
        self._rng, self._factor = np.random.default_rng(seed), factor

    @property
    def secure(self) -> bool:
        return False

    def geometric(self, scale: float, size: int, *, index: int) -> np.ndarray:
        draws = self._rng.standard_exponential(size) * scale * self._factor
        return np.floor(draws).astype(np.int64)

    def discrete_laplace(self, scale: float, size: int, *, index: int) -> np.ndarray:
        return self.geometric(scale, size, index=index) - self.geometric(scale, size, index=index)

    def discrete_gaussian(self, sigma: float, size: int, *, index: int) -> np.ndarray:
        return np.rint(self._rng.standard_normal(size) * sigma * self._factor).astype(np.int64)

    def rounded_gaussian(self, sigma: float, size: int, *, index: int) -> np.ndarray:
        return self.discrete_gaussian(sigma, size, index=index)

    def subset(self, n: int, m: int, *, index: int) -> np.ndarray:
        mask = np.zeros(n, dtype=bool)
        mask[self._rng.permutation(n)[:m]] = True
        return mask

    def gumbel_max(self, scores: np.ndarray, scale: float, *, index: int) -> int:
        return int(np.argmax(scores / scale + self._rng.gumbel(size=len(scores))))


def refused(
    error: type[Exception] | tuple[type[Exception], ...],
    match: str,
    call: Callable[..., Any],
    *args: Any,
    **options: Any,
) -> None:
    """The call raises the error, with these words."""
    with pytest.raises(error, match=match):
        call(*args, **options)


def stated(test: CITest, n: int, alpha: float = 0.05) -> Sensitivity:
    """What a test says that one replaced record of ``n`` moves its margin by."""
    relation = jaxcd.privacy.Relation.REPLACE_ONE
    found = test.margin_sensitivity(alpha=alpha, n_samples=n, relation=relation)
    assert found is not None
    return found


def words_of(*parts: Any) -> list[str]:
    """The words of a command line: those of a text, as a shell splits it, those of the parts of a
    list or tuple, and anything else (a path, a number) as one word.
    """
    found: list[str] = []
    for part in parts:
        if isinstance(part, str):
            found += shlex.split(part)
        elif isinstance(part, (list, tuple)):
            found += words_of(*part)
        else:
            found.append(str(part))
    return found


class CommandLine:
    """``jaxcd`` with the words of these parts."""

    def __init__(self, captured: pytest.CaptureFixture[str]) -> None:
        self._captured = captured

    def __call__(self, *parts: Any) -> tuple[int, str, str]:
        """The exit code, and what went to stdout and stderr."""
        self._captured.readouterr()
        code = main(words_of(*parts))
        return code, *self._captured.readouterr()

    def shows(self, *parts: Any) -> str:
        """What went to stdout, with exit code 0."""
        code, out, err = self(*parts)
        assert code == 0, err
        return out

    def json(self, *parts: Any) -> Any:
        """What ``--json`` prints."""
        return json.loads(self.shows(*parts, "--json"), parse_constant=pytest.fail)

    def refuses(self, expected: str, *parts: Any) -> str:
        """Exit code 2, nothing on stdout, and one line of plain words with these."""
        code, out, err = self(*parts)
        assert (code, out) == (2, "") and expected in err, err
        assert err.startswith("jaxcd: ") and err.count("\n") == 1 and err.endswith("\n")
        assert "Traceback" not in err
        return err


def chi_square_moments(table: np.ndarray) -> tuple[float, float]:
    """Mean and variance of Pearson's chi-square over all tables with these margins, weighted as
    random permutations weigh them: from the factorial moments of their cells, in fractions.
    """
    rows, columns, n = table.sum(1).tolist(), table.sum(0).tolist(), int(table.sum())
    fourth = {1: 1, 2: 7, 3: 6, 4: 1}  # x^4 by falling powers

    def falling(x: int, k: int) -> int:
        return math.prod(range(x - k + 1, x + 1)) if k <= x else 0

    def expected(one: tuple[int, int], other: tuple[int, int]) -> Fraction:
        """E[O^2 O'^2] of two cells."""
        (a, b), (c, d) = one, other
        if one == other:
            parts = [
                (f * falling(rows[a], k) * falling(columns[b], k), k) for k, f in fourth.items()
            ]
        else:
            parts = []
            for i, j in itertools.product((1, 2), repeat=2):
                by_row = (
                    falling(rows[a], i + j) if a == c else falling(rows[a], i) * falling(rows[c], j)
                )
                by_column = (
                    falling(columns[b], i + j)
                    if b == d
                    else falling(columns[b], i) * falling(columns[d], j)
                )
                parts.append((by_row * by_column, i + j))
        return sum((Fraction(part, falling(n, k)) for part, k in parts if part), Fraction(0))

    cells = [(a, b) for a in range(len(rows)) for b in range(len(columns)) if rows[a] * columns[b]]
    first = second = Fraction(0)
    for a, b in cells:
        for k in (1, 2):
            if falling(n, k):
                top = falling(rows[a], k) * falling(columns[b], k)
                first += Fraction(top, falling(n, k) * rows[a] * columns[b])
    for one, other in itertools.product(cells, repeat=2):
        weight = rows[one[0]] * columns[one[1]] * rows[other[0]] * columns[other[1]]
        second += expected(one, other) / weight
    return float(n * first - n), float(n * n * (second - first**2))


def designed(n: int, seed: int) -> jaxcd.Dataset:
    """arm -> x -> y <- site; 85 % of a site's rows are of one arm, by design."""
    rng = np.random.default_rng(seed)
    arm = rng.integers(0, 2, n)
    site = np.where(rng.random(n) < 0.85, arm, 1 - arm)
    x = (rng.random(n) < 0.2 + 0.6 * arm).astype(int)
    y = (rng.random(n) < 0.1 + 0.1 * x + 0.5 * site).astype(int)
    columns = dict.fromkeys(("arm", "site", "x", "y"), jaxcd.Categorical((0, 1)))
    domain = jaxcd.Domain(columns, interventions={"arm": {}, "site": {}})
    return jaxcd.Dataset.from_codes(np.column_stack([arm, site, x, y]), domain=domain)
