"""The ops whose compiled programs are counted are there to be compiled, whatever the compiler."""

from __future__ import annotations

import jax
import pytest

from benchmarks import gpu_compile
from jaxcd.ops import double_precision

OPS = [*gpu_compile.ops(5_000), *gpu_compile.sharded_ops(5_000, jax.devices()[:1])]


@pytest.mark.parametrize("op", OPS, ids=[op.name for op in OPS])
def test_every_op_takes_the_shapes_that_it_states(op):
    with double_precision():
        arguments = [jax.ShapeDtypeStruct(shape, kind) for shape, kind in op.shapes]
        assert jax.tree.leaves(jax.eval_shape(op.function, *arguments))


def test_launches_of_a_program_text_are_counted():
    """A loop of known length counts its body so often, a conditional is a read of the host."""
    with double_precision():
        loop = jax.jit(lambda x: jax.lax.fori_loop(0, 7, lambda i, y: y @ y, x))
        text = loop.lower(jax.ShapeDtypeStruct((8, 8), "float64")).compile().as_text()
    counts = gpu_compile.counts_of(text)
    assert counts.launches >= 7 and not counts.host_reads
