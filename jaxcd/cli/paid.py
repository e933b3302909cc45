"""What was paid for is kept: an error or an interrupt after the first charge leaves a file with
what was bought.
"""

from __future__ import annotations

import datetime
import json
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jaxcd.cli.shared import tell
from jaxcd.errors import OptionError

__all__ = ["check_apart", "check_certificate_out", "kept", "write_certificate"]


class Kept:
    """In words, where an option had what was paid for written already; "": nowhere."""

    where: str = ""


def _made(path: Path | None) -> tuple[int, int] | None:
    """Which file is there: one that is written whole is another one."""
    try:
        found = None if path is None else path.stat()
    except OSError:
        return None
    return None if found is None else (found.st_ino, found.st_mtime_ns)


@contextmanager
def kept(release_out: Path | None = None) -> Iterator[Kept]:
    """Whatever ends the block after a charge: what was bought is written to a file of the working
    folder, or of the system's for temporary files, and stderr says where.  Where the block has said
    that it is written (:class:`Kept`), or has written the release to the file that an option names,
    stderr names that place and there is no other file.  A signal that asks the process to end is an
    interrupt; more of them change nothing until the file is there.
    """
    from jaxcd.privacy import paying, receipt_of

    written, before = Kept(), _made(release_out)
    with _interrupted_by_signals() as saving:
        try:
            with paying():
                yield written
                sys.stdout.flush()  # what is only shown is not kept while it waits to be written
        except BaseException as error:
            saving.append(True)
            receipt = receipt_of(error)
            if not written.where and _made(release_out) not in (None, before):
                written.where = f"what it bought is in {release_out}"
            if receipt is not None and written.where:
                tell(f"{_spent(receipt)}; {written.where}", error=True)
            elif receipt is not None:
                _save(receipt)
            elif isinstance(error, KeyboardInterrupt):
                tell("jaxcd: nothing was spent", error=True)
            raise


@contextmanager
def _interrupted_by_signals() -> Iterator[list[bool]]:
    """Asked to end by a job system, or by a terminal that is closed: as by Ctrl-C.

    Asked again while an interrupt is on its way out, or once the list that this yields holds
    something, the process goes on: another interrupt would take the place of the first, and lose
    what that carries.
    """
    saving: list[bool] = []

    def interrupt(*_: object) -> None:
        if not (saving or isinstance(sys.exception(), KeyboardInterrupt)):
            raise KeyboardInterrupt

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            usual = (signal.SIG_DFL, signal.default_int_handler)
            if number is not None and signal.getsignal(number) in usual:
                before[number] = signal.signal(number, interrupt)
    try:
        yield saving
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _spent(receipt: Any) -> str:
    from jaxcd.privacy.rounding import promise_in_words

    return (
        f"jaxcd: {promise_in_words(receipt.spent.epsilon, receipt.spent.delta)} was "
        "spent before the run ended"
    )


def _save(receipt: Any) -> None:
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S-%f")
    spent = _spent(receipt)
    refused = ""
    for folder in (Path.cwd, tempfile.gettempdir):  # the first may be gone, or take no file
        try:
            path = Path(folder(), f"jaxcd-bought-{stamp}.npz")
            receipt.save(path)
        except OSError as error:
            refused = refused or f"the working folder: {error.strerror or error}"
        except OptionError as error:
            refused = refused or str(error)
        else:
            how = "jaxcd.Release.load" if hasattr(receipt.partial, "tests") else "numpy.load"
            held = (
                f"what it bought is in {path}"
                if receipt.purchases
                else f"no number was released for it; what was charged is in {path}"
            )
            tell(f"{spent}; {held}; {how} reads it", error=True)
            return
    what = (
        "what it bought" if receipt.purchases else "no number was released for it; what was charged"
    )
    tell(f"{spent}, and {what} could not be written ({refused})", error=True)


def check_apart(
    written: Mapping[str, Path | None],
    read: Mapping[str, Path | None],
    *,
    report: Path | None = None,
) -> None:
    """Refuses, before anything is spent, a place that would be written twice, or that is read: what
    was bought would be lost, or a ledger.

    Args:
        written: what the options say that is to be written, by their names.
        read: files that the command reads.
        report: the folder of a report, ``--out``, whose files are written as well.
    """
    from jaxcd.places import real_path

    seen = {real_path(path): name for name, path in read.items() if path is not None}
    for name, path in written.items():
        if path is None:
            continue
        place = real_path(path)
        if place in seen:
            other = seen[place]
            raise OptionError(f"{name} {str(path)!r} is what {other} names, too; give another name")
        seen[place] = name
    if report is not None:
        from jaxcd.report import FILES

        for file in FILES:
            if (place := real_path(report / file)) in seen:
                raise OptionError(
                    f"--out {str(report)!r}: its file {file!r} is what {seen[place]} names, too; "
                    "give another name"
                )


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
