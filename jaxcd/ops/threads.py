"""Threads of the linear algebra library that XLA calls on a CPU for eigenvalues."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

import threadpoolctl

__all__ = ["one_blas_thread"]


@cache
def _controller() -> threadpoolctl.ThreadpoolController:
    return threadpoolctl.ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """A context in which BLAS and LAPACK use one thread; for many eigenvalue problems of a few
    hundred rows.

    XLA has its own threads for products and hands eigenvalue problems to the LAPACK of scipy.  That
    library's threads gain nothing on a small matrix, and spin for milliseconds after each call, on
    the cores where XLA would go on.  Computations are dispatched asynchronously: what is started in
    the context must also be finished there.  The setting is the process's, and is restored on
    leaving.
    """
    return _controller().limit(limits=1, user_api="blas")
