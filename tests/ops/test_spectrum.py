"""The spectrum that is made in blocks, and the pool of features, against their plain forms."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from jaxcd.ops import double_precision, gram, ridge


@pytest.mark.parametrize("block", [40, 64, 130])
@pytest.mark.parametrize("copies", [1, 3])
def test_a_spectrum_in_blocks_is_that_of_the_factor(block, copies):
    rng = np.random.default_rng(0)
    x = np.repeat(rng.normal(size=(130 // copies, 2)), copies, axis=0)
    n, targets = len(x), rng.normal(size=(len(x), 3))
    with double_precision():
        got = ridge._gaussian_spectrum(jnp.asarray(x), jnp.float64(1.5), 60, min(block, n))
        low = gram.nystroem(jnp.asarray(x), 1.5, rank=60)
        wanted = ridge.spectrum(low.factor)
        for penalty in (1e-4 * n, 0.1 * n):
            both = [
                np.asarray(ridge.residuals(s, jnp.asarray(targets), penalty)) for s in (got, wanted)
            ]
            np.testing.assert_allclose(*both, atol=1e-3)
        basis = np.asarray(got.basis)
        kept = np.asarray(got.values) > 1e-4 * n
        np.testing.assert_allclose(
            (basis.T @ basis)[np.ix_(kept, kept)], np.eye(kept.sum()), atol=1e-6
        )
        k = np.asarray(gram.gaussian_gram(jnp.asarray(x), jnp.asarray(x), 1.5))
    np.testing.assert_allclose(basis * np.asarray(got.values) @ basis.T, k, atol=1e-5)
