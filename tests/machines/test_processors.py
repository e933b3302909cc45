"""Constants, copies, ties and almost singular matrices have the same answers on every processor
that can be pretended here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxcd.ops import correlation, double_precision
from jaxcd.ops.standardising import centred, is_constant, quotient, standardised

# : OpenBLAS kernels, instruction sets of XLA, and threads; a processor that lacks a set runs the
# best that it has.
PROCESSORS = [
    {"OPENBLAS_CORETYPE": "Prescott", "XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"},
    {  # OpenBLAS has these kernels for Zen too.
        "OPENBLAS_CORETYPE": "Haswell",
        "OPENBLAS_NUM_THREADS": "1",
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX2 --xla_cpu_multi_thread_eigen=false",
    },
    {},
]
# OpenBLAS runs the kernels that it is told to, and they end a process that lacks their set.  Where
# they are this machine's own, they are the last of the list.
NATIVE = subprocess.run(
    [sys.executable, "-c", "import numpy"],
    env={**os.environ, "OPENBLAS_VERBOSE": "2"},
    capture_output=True,
    text=True,
).stderr
if "avx512f" in Path("/proc/cpuinfo").read_text() and "SkylakeX" not in NATIVE:
    PROCESSORS.insert(3, {"OPENBLAS_CORETYPE": "SkylakeX", "XLA_FLAGS": "--xla_cpu_max_isa=AVX512"})


def answers(setting: dict[str, str]) -> dict[str, Any]:
    script = Path(__file__).with_name("answers.py")
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, **setting},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.slow
def test_answers_do_not_depend_on_the_processor():
    first, *others = map(answers, PROCESSORS)
    assert any(independent for *_, independent in first["hsic"]) and not all(
        independent for *_, independent in first["hsic"]
    )
    assert all(graph for graph in first["graphs_of_copies"].values())
    for setting, other in zip(PROCESSORS[1:], others, strict=True):
        assert other == first, setting


SIZES = st.floats(min_value=1e-300, max_value=1e300) | st.sampled_from(
    [0.1, 1 / 3, 7.0, 1e16 + 2, 5e-324]
)


@settings(max_examples=300)
@given(n=st.integers(2, 3000), value=SIZES, sign=st.sampled_from([-1.0, 1.0]))
def test_what_is_constant_is_constant_whatever_its_mean_rounds_to(
    n: int, value: float, sign: float
):
    column = np.full(n, sign * value)
    assert is_constant(column)
    assert not standardised(column).any() and not centred(column).any()


def test_means_of_equal_numbers_do_differ_from_them():
    """Else the tests above could not fail."""
    assert any(np.full(n, value).std() > 0 for n in range(3, 200) for value in (0.1, 1 / 3, 7.1))


@settings(max_examples=60)
@given(
    n=st.sampled_from([3, 5, 6, 7, 9, 10, 13, 31, 47, 100, 255, 400]),
    value=st.floats(min_value=1e-3, max_value=1e6),
    ulps=st.integers(0, 2),
)
def test_correlations_with_what_is_constant_but_for_rounding_are_zero(
    n: int, value: float, ulps: int
):
    rng = np.random.default_rng(n)
    column = np.full(n, value)
    column[: n // 2] *= 1 + ulps * 2.0**-52
    with double_precision():
        matrix = np.asarray(
            correlation.correlation_matrix(np.column_stack([column, rng.normal(size=n)]))
        )
    assert matrix[0, 1] == matrix[1, 0] == 0 and matrix[0, 0] == 1


def test_a_small_spread_on_a_large_mean_is_seen():
    rng = np.random.default_rng(0)
    x = rng.normal(size=1000)
    far = 1e9 + np.round(x, 3)
    assert not is_constant(far)
    np.testing.assert_allclose(standardised(far), standardised(np.round(x, 3)), atol=1e-3)
    np.testing.assert_allclose(standardised(x), (x - x.mean()) / x.std(), rtol=1e-12, atol=1e-12)
    for scale in (1e-300, 1e300):
        np.testing.assert_allclose(standardised(scale * x), standardised(x), rtol=1e-9, atol=1e-9)


@settings(max_examples=200)
@given(top=st.floats(0, 1e18), bottom=st.floats(0, 1e300))
def test_quotients_are_total(top: float, bottom: float):
    with np.errstate(all="raise", under="ignore"):
        found = quotient(np.array([top]), np.array([bottom]))
    assert np.isfinite(found).all()
    if bottom > 1e-289:
        assert found[0] == pytest.approx(top / bottom)
