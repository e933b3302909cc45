"""Lines between the coordinator and a site: in the same process, or to a process of its own.

A real transport is one more class with ``send``, ``receive`` and ``close``.
"""

from __future__ import annotations

import abc
import multiprocessing
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, final

from jaxcd.errors import JaxcdError

__all__ = ["Line", "LocalLine", "ProcessLine"]


class Line(abc.ABC):
    """A way to one site and back, for whole messages."""

    @abc.abstractmethod
    def send(self, content: bytes) -> None:
        """Sends a message; that it is lost is no error."""

    @abc.abstractmethod
    def receive(self, timeout: float) -> bytes | None:
        """The next message that came, or None where none did within so many seconds."""

    @abc.abstractmethod
    def close(self) -> None:
        """Ends the line."""


@final
class LocalLine(Line):
    """To a site in this process.

    Args:
        answer: of the site; None stands for a site that does not reply.
    """

    def __init__(self, answer: Callable[[bytes], bytes | None]) -> None:
        self._answer = answer
        self._waiting: deque[bytes] = deque()

    def send(self, content: bytes) -> None:
        reply = self._answer(content)
        if reply is not None:
            self._waiting.append(reply)

    def receive(self, timeout: float) -> bytes | None:
        return self._waiting.popleft() if self._waiting else None

    def close(self) -> None:
        self._waiting.clear()


def _serve(make: Callable[[], Any], connection: Any) -> None:
    """A site's process: answers until the line ends."""
    try:
        site = make()
    except (JaxcdError, OSError) as error:
        # What is wrong with the rows is for their owner.
        print(f"jaxcd: {' '.join(str(error).split())}", file=sys.stderr, flush=True)
        connection.send_bytes(b"failed")
        return
    connection.send_bytes(b"ready")
    while True:
        try:
            content = connection.recv_bytes()
        except (EOFError, OSError):
            return
        if not content:
            return
        try:
            connection.send_bytes(site.answer(content))
        except (BrokenPipeError, OSError):
            return


@final
class ProcessLine(Line):
    """To a site in a process of its own, over a pipe.

    Args:
        make: makes the site there; a function that can be pickled.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(make, other), daemon=True)
        self._process.start()
        other.close()

    def wait(self, timeout: float) -> str:
        """Waits until the site has read its rows; returns what is wrong, or ""."""
        content = self.receive(timeout)
        if content is None:
            return "it did not start"
        return (
            "" if content == b"ready" else "it could not start, and has said why on its own screen"
        )

    def send(self, content: bytes) -> None:
        try:
            self._connection.send_bytes(content)
        except (BrokenPipeError, OSError):
            return

    def receive(self, timeout: float) -> bytes | None:
        try:
            return self._connection.recv_bytes() if self._connection.poll(timeout) else None
        except (EOFError, OSError):
            return None

    def close(self) -> None:
        self.send(b"")
        self._connection.close()
        self._process.join(10)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join(10)
