"""Threads: of the linear algebra library that XLA calls on a CPU for eigenvalues, and of the host
where it has many small problems to hand out.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import TypeVar

import threadpoolctl

__all__ = ["MOST_THREADS", "in_order", "n_threads", "one_blas_thread"]

T = TypeVar("T")
R = TypeVar("R")

#: More gain nothing: the host is then busy handing out.
MOST_THREADS = 4


def n_threads() -> int:
    """As many as this process has processors, and at most 4."""
    try:
        own = len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        own = os.cpu_count() or 1
    return min(own, MOST_THREADS)


def in_order(function: Callable[[T], R], items: Iterable[T], *, threads: int) -> Iterator[R]:
    """function of each item, in their order, some worked on at once, one more than the threads in
    advance: what has been asked for and not yet taken stays bounded.
    """
    if threads == 1:
        yield from map(function, items)
        return
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


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
