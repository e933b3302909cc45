"""One implementation for all devices; only sizes of blocks differ."""

from __future__ import annotations

from collections.abc import Mapping

import jax

__all__ = ["block_of"]


def block_of(sizes: Mapping[str, int]) -> int:
    """The size of a block on the platform in use.

    Args:
        sizes: for "cpu", and for "gpu": every other platform.
    """
    return sizes["cpu" if jax.default_backend() == "cpu" else "gpu"]
