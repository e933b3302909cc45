"""Work handed to several threads comes back in order, no faster asked for than taken."""

from __future__ import annotations

import threading
import time

import pytest

from jaxcd.ops.threads import MOST_THREADS, in_order, n_threads


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_answers_come_in_the_order_of_the_items(threads):
    def slow_if_even(i: int) -> int:
        time.sleep(0.002 * (i % 2 == 0))
        return i * i

    assert list(in_order(slow_if_even, range(20), threads=threads)) == [i * i for i in range(20)]
    assert not list(in_order(slow_if_even, [], threads=threads))


def test_no_more_is_begun_than_the_threads_and_one():
    begun, lock = [], threading.Lock()

    def begin(i: int) -> int:
        with lock:
            begun.append(i)
        return i

    answers = in_order(begin, range(100), threads=3)
    assert next(answers) == 0
    assert len(begun) <= 4


def test_an_error_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        list(in_order(lambda i: 1 // i, [2, 1, 0], threads=2))


def test_a_few_threads_at_most():
    assert 1 <= n_threads() <= MOST_THREADS
