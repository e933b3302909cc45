"""Double precision where it is needed, without touching the global configuration of JAX."""

from __future__ import annotations

from contextlib import AbstractContextManager

import jax


def double_precision() -> AbstractContextManager:
    """A context in which arrays may be float64 and int64, whatever the caller's ``jax_enable_x64``
    is.

    Compiled functions are cached per context, so entering it costs no recompilation after the first
    time.
    """
    return jax.enable_x64(True)
