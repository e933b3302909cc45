"""What was paid for is kept: an error or an interrupt after the first charge leaves a file with
what was bought.
"""

from __future__ import annotations

import datetime
import json
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jaxcd.errors import OptionError

__all__ = ["check_apart", "check_certificate_out", "kept", "write_certificate"]


@contextmanager
def kept() -> Iterator[None]:
    """Whatever ends the block after a charge: what was bought is written to a file of the working
    folder, and stderr says where.  A signal that asks the process to end is an interrupt.
    """
    from jaxcd.privacy import paying, receipt_of

    try:
        with _interrupted_by_signals(), paying():
            yield
    except BaseException as error:
        receipt = receipt_of(error)
        if receipt is not None:
            _save(receipt)
        elif isinstance(error, KeyboardInterrupt):
            print("jaxcd: nothing was spent", file=sys.stderr)
        raise


@contextmanager
def _interrupted_by_signals() -> Iterator[None]:
    """Asked to end by a job system, or by a terminal that is closed: as by Ctrl-C."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _save(receipt: Any) -> None:
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S-%f")
    path = Path(f"jaxcd-bought-{stamp}.npz").absolute()
    spent = (
        f"jaxcd: epsilon={receipt.spent.epsilon:.6g}, delta={receipt.spent.delta:g} was "
        "spent before the run ended"
    )
    try:
        receipt.save(path)
    except OSError as error:
        print(
            f"{spent}, and what it bought could not be written to {path}: "
            f"{error.strerror or error}",
            file=sys.stderr,
        )
    else:
        how = "jaxcd.Release.load" if hasattr(receipt.partial, "tests") else "numpy.load"
        print(f"{spent}; what it bought is in {path}; {how} reads it", file=sys.stderr)


def check_apart(written: Mapping[str, Path | None], read: Mapping[str, Path | None]) -> None:
    """Refuses, before anything is spent, a place that would be written twice, or that is read: what
    was bought would be lost, or a ledger.

    Args:
        written: what the options say that is to be written, by their names.
        read: files that the command reads.
    """
    seen = {path.resolve(): name for name, path in read.items() if path is not None}
    for name, path in written.items():
        if path is None:
            continue
        if path.resolve() in seen:
            other = seen[path.resolve()]
            raise OptionError(f"{name} {str(path)!r} is what {other} names, too; give another name")
        seen[path.resolve()] = name


def check_certificate_out(path: Path | None) -> None:
    """Refuses, before anything is spent, a file that is there or cannot be."""
    if path is None:
        return
    from jaxcd.places import check_new_file

    check_new_file("--certificate-out", path, force=True, cure="one such as privacy.json")
    if path.exists():
        raise OptionError(f"--certificate-out: file {str(path)!r} exists; give another name")


def write_certificate(result: Any, path: Path) -> None:
    """Writes what ``jaxcd verify`` checks."""
    from jaxcd.places import written_whole

    content = json.dumps(result.certificate(), indent=2, ensure_ascii=False, allow_nan=False)
    with written_whole(path) as draft:
        draft.write_text(content + "\n", encoding="utf-8")
