"""Markov equivalence of many DAGs at once: a key that two DAGs share iff they are equivalent.

Two DAGs are equivalent iff they have the same adjacencies and the same v-structures (Verma and
Pearl 1990).
"""

from __future__ import annotations

import numpy as np

__all__ = ["equivalence_keys"]


def equivalence_keys(adjacencies: np.ndarray) -> list[bytes]:
    """Keys of DAGs on the same variables.

    Args:
        adjacencies: bool (G, d, d), acyclic.

    Returns:
        G keys, equal iff the DAGs are Markov equivalent.
    """
    skeleton = adjacencies | adjacencies.transpose(0, 2, 1)
    d = adjacencies.shape[1]
    # [g, i, j, k]: i -> k <- j with i and j not adjacent, i < j.
    apart = ~skeleton & np.triu(np.ones((d, d), dtype=bool), k=1)
    colliders = adjacencies[:, :, None, :] & adjacencies[:, None, :, :] & apart[:, :, :, None]
    n_graphs = len(adjacencies)
    flat = np.concatenate(
        [skeleton.reshape(n_graphs, d**2), colliders.reshape(n_graphs, d**3)], axis=1
    )
    return [row.tobytes() for row in np.packbits(flat, axis=1)]
