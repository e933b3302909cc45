"""Checks of the places that files are read from and written to.  Loads nothing slow: the command
line asks before it starts.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard

from jaxcd.errors import DataError, OptionError

__all__ = [
    "check_folder_takes",
    "check_new_file",
    "check_there",
    "force_file",
    "force_folder",
    "is_path",
    "path_of",
    "real_path",
    "written_whole",
]


_LONGEST = 400  # characters that are shown of what was given for a path


def is_path(value: Any) -> TypeGuard[str | Path]:
    """Whether it can name a file: text, or an object that stands for a path."""
    return isinstance(value, (str, os.PathLike))


def path_of(name: str, value: Any, *, example: str) -> Path:
    """Returns the path that is given, else raises OptionError.

    Args:
        name: the argument.
        value: what was given.
        example: of a path.
    """
    try:
        path = Path(value)
        try:
            path.stat()  # an error for a link to itself, a long name, a folder that is closed
        except (FileNotFoundError, NotADirectoryError):
            if "\n" in str(path):
                raise ValueError("it has several lines, and there is no such file") from None
    except (TypeError, ValueError, OSError) as error:
        why = getattr(error, "strerror", None) or error
        raise OptionError(
            f"{name} = {_shown(value)} is no path of a file ({why}); give one such as {example!r}"
        ) from None
    return path


def _shown(value: Any) -> str:
    """What was given for a path, in a message.  A table, or the text of one, may hold rows that no
    message may show.
    """
    if is_path(value):
        text = os.fspath(value)
        rows = "\n" in text or len(text) > _LONGEST
        return f"a text of {len(text):,} characters" if rows else repr(value)
    return (
        repr(value)
        if isinstance(value, (int, float, bytes, type(None)))
        else f"a {type(value).__name__}"
    )


def real_path(path: str | Path) -> Path:
    """The whole path of a file, behind all links.  A link that leads to itself stays what it is,
    which ``Path.resolve`` says from Python 3.13 on; before, it raises RuntimeError.
    """
    return Path(os.path.realpath(Path(path)))


def check_folder_takes(name: str, path: Path, folder: Path) -> None:
    """Raises OptionError unless a file can be made in ``folder``, which is there, on the way to
    ``path``.
    """
    try:
        # Rights do not tell of a file system that is full, or that cannot be written: a file
        # without a name is made, and is gone.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OptionError(
            f"{name} {str(path)!r} cannot be written: no file can be made in {str(folder)!r} "
            f"({error.strerror or error}); give another place"
        ) from None


def check_new_file(
    name: str, path: Path, *, force: bool, option: str = "force=True", cure: str = "another name"
) -> None:
    """Raises OptionError unless a file can be written there, over another one only where ``force``
    is given, by the option of this name.
    """
    folder, nowhere = path.absolute().parent, path.is_symlink() and not path.exists()
    if path.is_dir() or nowhere or not folder.is_dir():
        raise OptionError(f"{name} {str(path)!r} is no file in a folder that exists; give {cure}")
    if path.exists() and not force:
        raise OptionError(
            f"{name}: file {str(path)!r} exists; give another name, or {option} to overwrite it"
        )
    if path.exists() and not os.access(path, os.W_OK):
        raise OptionError(f"{name}: file {str(path)!r} cannot be written over; give another name")
    check_folder_takes(name, path, folder)


def check_there(
    path: Path, *, name: str = "file", wanted: str = "a file", of: str = "*", hint: str = ""
) -> None:
    """Raises DataError unless there is such a file; of a folder it says which file in it to give.

    Args:
        path: of the file.
        name: the argument, or what the file is.
        wanted: the kind of file that is read.
        of: a pattern of the names that such files have in a folder.
        hint: where to get one, for a folder that has none.
    """
    if path.is_dir():
        inside = sorted(each for each in path.glob(of) if each.is_file())
        if len(inside) == 1:
            cure = f"give the file in it, {str(inside[0])!r}"
        elif inside:
            cure = f"give {wanted} in it, such as {str(inside[0])!r}"
        else:
            cure = hint or f"there is none in it, so give {wanted} from elsewhere"
        what = name.removesuffix("file").rstrip()  # which it is not
        raise DataError(f"{what} {str(path)!r} is a folder, and {wanted} is read; {cure}".lstrip())
    if not path.is_file():
        raise DataError(f"{name} {str(path)!r} does not exist; check the path")


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """The path of a draft to write, which takes the place of ``path`` in one step when the block
    ends: what goes wrong before leaves no file there, or the old one as it was.  The content is on
    the disk before the name is, so that this also holds where the machine stops.
    """
    if path.exists() and not path.is_file():  # such as a pipe
        yield path
        return
    path = real_path(path)
    draft = path.with_name(f".jaxcd-{uuid.uuid4().hex}")  # no longer than names may be
    try:
        if path.is_file():
            draft.touch()
            shutil.copymode(path, draft)
        yield draft
        force_file(draft)
        os.replace(draft, path)
        force_folder(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def force_file(path: Path) -> None:
    """Forces what a file holds to the disk."""
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def force_folder(folder: Path) -> None:
    """Forces new names in a folder to the disk, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
