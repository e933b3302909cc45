r"""Iterative Bayesian update: the distribution of the true records that explains the randomised
ones best.

Randomised records have cell probabilities q(y) = sum_x p(x) C[x, y], with C the channel, known and
public.  Expectation-maximisation

    p'(x) = (1 / n) sum_y N(y) p(x) C[x, y] / q(y)

never lowers the likelihood sum_y N(y) log q(y), which is concave in p, and its limit from a start
inside the simplex is a maximum.  Where the inverse-channel estimate C^{-T} N / n is a distribution
it is that maximum; where it has negative entries, the maximum is on the border of the simplex.

With a channel for each column C is their Kronecker product, and both sums go column by column: a
table of K cells costs K sum k_i a step and no matrix over cells is formed.

Everything here is post-processing of records that were randomised before they were collected: it
costs no privacy.

Source:
    Agrawal and Aggarwal 2001; Dempster, Laird, Rubin 1977.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxcd.checks import a_type, check_key, check_listed, check_number, check_whole
from jaxcd.citests.base import require_data
from jaxcd.data import Dataset, Domain
from jaxcd.errors import DataError, DomainError, JaxcdError, OptionError
from jaxcd.local.base import LocalMechanism, check_domain
from jaxcd.local.channels import MAX_CHANNEL_CELLS, joint_channel
from jaxcd.local.channels import channels as attribute_channels
from jaxcd.local.kary_response import CombinedKaryResponse, kept
from jaxcd.local.randomising import check_mechanism
from jaxcd.ops.standardising import quotient
from jaxcd.releases.redrawing import generator

__all__ = ["MAX_TABLE_CELLS", "denoised_joint", "ibu", "resample"]

MAX_TABLE_CELLS = 1 << 22
"""The largest joint table that is written out (32 MiB)."""

Channels = np.ndarray | Sequence[np.ndarray]


def through(table: np.ndarray, matrices: Sequence[np.ndarray]) -> np.ndarray:
    """The tensor sum_x table[x_1, ..., x_d] prod_i matrices[i][x_i, y_i], one column at a time."""
    for axis, matrix in enumerate(matrices):
        table = np.moveaxis(np.tensordot(table, matrix, axes=(axis, 0)), -1, axis)
    return table


def ibu(
    counts: np.ndarray,
    channels: Channels,
    *,
    n_iterations: int = 10_000,
    tolerance: float = 1e-9,
    start: np.ndarray | None = None,
) -> np.ndarray:
    r"""The maximum likelihood estimate of the distribution of the true cells, by
    expectation-maximisation.

    p'(x) = (1 / n) sum_y N(y) p(x) C[x, y] / sum_x' p(x') C[x', y].

    Args:
        counts: N, the table of the randomised records, of any shape, finite and not negative; it
            need not be whole numbers.
        channels: one matrix for each axis of ``counts``, (k_i, k_i) with entries P[y | x], rows x;
            or a single matrix over all cells of ``counts`` in C order.
        n_iterations: the most steps, at least 1.
        tolerance: stop when a step moves less than so much probability (half the sum of absolute
            changes), not negative; 0 for all steps.
        start: a distribution to start from, of the shape of ``counts``; default uniform.  Cells
            that start at zero stay there.

    Returns:
        Probabilities, float64 of the shape of ``counts``; the start where all counts are zero.

    Raises:
        DataError: ``counts`` or ``start`` is not of its kind.
        OptionError: another argument is not of its kind or does not fit the counts.

    Source:
        module docstring.

    Example:
        >>> import numpy as np
        >>> from jaxcd.local import ibu
        >>> channel = np.array([[0.8, 0.2], [0.2, 0.8]])
        >>> ibu(np.array([620, 380]), [channel]).round(3).tolist()
        [0.7, 0.3]
    """
    table = _numbers("counts", counts)
    with np.errstate(over="ignore"):
        n = table.sum()
    if not (np.isfinite(n) and (table >= 0).all()):
        raise DataError(
            "counts must be finite, as their sum must, and not negative; give the table of the "
            "randomised records as it is"
        )
    shape = table.shape
    matrices, form = _fitting(channels, shape)
    for argument, value, least in (("n_iterations", n_iterations, 1), ("tolerance", tolerance, 0)):
        check_number(argument, value, least, cure="give one")
    estimate = (
        np.full(shape, 1 / max(table.size, 1)) if start is None else _distribution(start, shape)
    )
    if not n > 0:
        return estimate
    shares, estimate = (table / n).reshape(form), estimate.reshape(form)
    back = [matrix.T for matrix in matrices]
    for _ in range(int(n_iterations)):
        expected = through(estimate, matrices)
        # A cell that no possible record reports has no share either, but for rounding.
        updated = estimate * through(quotient(shares, expected), back)
        total = updated.sum()
        if not total > 0:
            raise DataError(
                "counts: none of these reports is possible under the channels and the start; give "
                "the channels of the mechanism, and leave start out"
            )
        updated /= total
        moved = np.abs(updated - estimate).sum() / 2
        estimate = updated
        if moved < tolerance:
            break
    return estimate.reshape(shape)


def _numbers(name: str, table: Any, error: type[JaxcdError] = DataError) -> np.ndarray:
    """A copy as float64."""
    try:
        return np.array(table, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise error(f"{name}: {a_type(table)} is no table of numbers; give an array") from None


def _fitting(
    channels: Channels, shape: tuple[int, ...]
) -> tuple[list[np.ndarray], tuple[int, ...]]:
    """The channels as float64 matrices, and the shape of the counts that they apply to."""
    single = isinstance(channels, np.ndarray) and channels.ndim == 2
    form = (math.prod(shape),) if single else shape
    listed = [channels] if single else check_listed("channels", channels, of="matrices")
    matrices = [_numbers("channels", matrix, OptionError) for matrix in listed]
    found = [matrix.shape for matrix in matrices]
    if found != [(k, k) for k in form]:
        raise OptionError(
            f"channels of shapes {found} do not fit counts of shape {shape}; give one k x k "
            "matrix an axis, or one over all cells"
        )
    for matrix in matrices:
        if not ((matrix >= 0).all() and np.allclose(matrix.sum(axis=1), 1, atol=1e-6)):
            raise OptionError(
                "channels: the rows of a channel are probabilities and sum to one; rows are true "
                "values, columns reported ones"
            )
    return matrices, form


def _distribution(start: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    table = _numbers("start", start)
    if table.shape != shape or not ((table >= 0).all() and np.isclose(table.sum(), 1)):
        raise DataError(
            f"start must be probabilities of shape {shape} that sum to one; leave it out for a "
            "uniform start"
        )
    return table


def places_of(domain: Domain, columns: Sequence[str] | None) -> list[int]:
    """The positions of named columns, each once; of all for None.

    Raises:
        DomainError: for another name, or one given twice.
    """
    if columns is None:
        return list(range(domain.n_columns))
    columns = check_listed("columns", columns, error=DomainError)
    if not columns or len(set(columns)) != len(columns):
        raise DomainError(f"columns = {columns!r}: give a list of column names, each once")
    for name in columns:
        domain[name]  # raises, with the names there are
    return [domain.names.index(name) for name in columns]


def channel_of(mechanism: LocalMechanism, domain: Domain, places: Sequence[int]) -> Channels:
    """The channel from the true to the randomised levels of some columns, whatever the other
    columns are.

    One matrix a column where columns are randomised by themselves; one matrix over the cells of the
    columns otherwise.  Combined k-ary response keeps a record or reports a uniform one, so on any
    set of columns it is the same with fewer cells.  Under the other combined mechanisms the noise
    on some columns depends on the true values of the rest, and only the whole record has a channel.

    Raises:
        DomainError: for a part of the columns of such a mechanism, or if a joint domain is too
            large; and as ``mechanism.check``.
    """
    check_mechanism(mechanism)
    cardinalities = mechanism.check(domain)
    if not mechanism.is_combined:
        matrices = attribute_channels(mechanism, domain)
        return [matrices[place] for place in places]
    if isinstance(mechanism, CombinedKaryResponse):
        cells, keep = (
            math.prod(cardinalities[place] for place in places),
            kept(mechanism.epsilon, math.prod(cardinalities)),
        )
        if not cells <= MAX_CHANNEL_CELLS:
            raise DomainError(
                f"columns: a channel between {cells:,} joint cells is too large, at most "
                f"{MAX_CHANNEL_CELLS:,}; name fewer columns"
            )
        return keep * np.eye(cells) + (1 - keep) / cells
    if sorted(places) != list(range(len(cardinalities))):
        raise DomainError(
            f"columns: under {type(mechanism).__name__} the noise on some columns depends on the "
            "others, so a part of them has no channel; "
            "denoise all columns at once, or randomise each by itself"
        )
    order = np.arange(math.prod(cardinalities)).reshape(cardinalities).transpose(places).ravel()
    return joint_channel(mechanism, domain)[np.ix_(order, order)]


def denoised_joint(
    data: Dataset,
    mechanism: LocalMechanism,
    *,
    columns: Sequence[str] | None = None,
    n_iterations: int = 10_000,
    tolerance: float = 1e-9,
) -> np.ndarray:
    """The estimated distribution of the true records of which ``data`` are the randomised ones.

    Args:
        data: what ``randomise`` returned, at most :data:`MAX_TABLE_CELLS` joint cells of the
            columns.
        mechanism: what randomised it.
        columns: the names of a marginal, in the order of the axes; default all.
        n_iterations: of :func:`ibu`.
        tolerance: as ``n_iterations``.

    Returns:
        Probabilities, float64 with one axis a column.

    Raises:
        DomainError: a column is not discrete, the table is too large, or a part of the columns has
            no channel of its own.
        PrivacyError: the domain is not declared.
        OptionError: an argument is out of its range.

    Guarantee:
        That of the mechanism: post-processing of what each person reported.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("cancer").sample(10_000, key=jax.random.key(0))
        >>> noise = jaxcd.SimulatedNoise(jax.random.key(1))
        >>> mechanism = jaxcd.local.KaryResponse(epsilon=10.0)
        >>> randomised = jaxcd.local.randomise(data, mechanism, noise=noise)
        >>> table = jaxcd.local.denoised_joint(randomised, mechanism, columns=["Smoker"])
        >>> table.round(1).tolist()
        [0.3, 0.7]
    """
    check_mechanism(mechanism)
    data = require_data(data, "denoising", cure="give the Dataset that randomise returned")
    cardinalities, places = mechanism.check(data.domain), places_of(data.domain, columns)
    shape = tuple(cardinalities[place] for place in places)
    if not math.prod(shape) <= MAX_TABLE_CELLS:
        raise DomainError(
            f"columns: {math.prod(shape):,} joint cells are too many for a table, at most "
            f"{MAX_TABLE_CELLS:,}; name fewer columns"
        )
    channel = channel_of(mechanism, data.domain, places)
    cells = np.ravel_multi_index(tuple(data.codes[:, place] for place in places), shape)
    counts = np.bincount(cells, minlength=math.prod(shape)).reshape(shape)
    return ibu(counts, channel, n_iterations=n_iterations, tolerance=tolerance)


def resample(estimate: np.ndarray, *, domain: Domain, n_samples: int, key: jax.Array) -> Dataset:
    """Independent rows from an estimated joint distribution, for algorithms that want records;
    post-processing.

    The rows are no more informative than the estimate: tests that count them as n observations are
    overconfident.

    Args:
        estimate: probabilities, one axis a column of the domain, not negative; what
            :func:`denoised_joint` returned.
        domain: the columns, discrete.
        n_samples: at least 1.
        key: a typed key of the public randomness.

    Returns:
        A data set of the domain.

    Raises:
        DataError: ``estimate`` is no distribution on the domain.
        OptionError: ``n_samples`` or ``key`` is not of its kind.

    Example:
        >>> import jax, jaxcd, numpy as np
        >>> domain = jaxcd.Domain({"a": jaxcd.Categorical((0, 1)), "b": jaxcd.Categorical((0, 1))})
        >>> estimate = np.array([[0.5, 0.0], [0.0, 0.5]])
        >>> rows = jaxcd.local.resample(estimate, domain=domain, n_samples=4, key=jax.random.key(0))
        >>> (rows.codes[:, 0] == rows.codes[:, 1]).tolist()
        [True, True, True, True]
    """
    check_domain(domain)
    shape = tuple(cardinality or 0 for cardinality in domain.cardinalities)
    table = _numbers("estimate", estimate)
    if table.shape != shape or not ((table >= 0).all() and np.isclose(table.sum(), 1)):
        raise DataError(
            f"estimate must be probabilities of shape {shape}, one axis a column of the domain, "
            "that sum to one"
        )
    check_whole("n_samples", n_samples, 1, cure="give the number of rows")
    check_key(key)
    rng = generator(key)
    counts = rng.multinomial(int(n_samples), table.ravel() / table.sum())
    cells = rng.permutation(np.repeat(np.arange(counts.size), counts))
    return Dataset.from_codes(
        np.column_stack(np.unravel_index(cells, shape)).astype(np.int32), domain=domain
    )
