"""What sites and coordinator say to each other: one header (JSON) and arrays, in one piece of
bytes.

    4 bytes   "JXCF"
    4 bytes   length of the header, little-endian
    header    JSON: format, version, kind, run, round, sender, body, arrays
    arrays    one after the other, as the header lists them: name, dtype, shape

Dtypes are ``|u1``, ``<u8`` and ``<f8``; nothing is pickled.  A message of another version, with a
piece missing or with more than it says is refused in one line.

=========  ===========  =====================================================================
kind       from         body
=========  ===========  =====================================================================
open       coordinator  the federation, the kind of release, the domain
joined     site         n_samples, secure, public_key
roster     coordinator  n_samples and public_key of every site that joined
ready      site         -
ask        coordinator  the question of a round, how many bits a number has
masked     site         array ``values``: its numbers, with its share of the noise and masks
unmask     coordinator  the sites whose numbers came
keys       site         its own key of the round, and those that it has with the missing
close      coordinator  -
refused    site         why, in one line
=========  ===========  =====================================================================
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jaxcd.errors import FormatError

__all__ = ["VERSION", "Message"]

FORMAT = "jaxcd-federation"
VERSION = 1
_MAGIC = b"JXCF"
_DTYPES = ("|u1", "<u8", "<f8")
_MOST_HEADER = 1 << 26


@dataclass(frozen=True, eq=False)
class Message:
    """One message.

    Args:
        kind: what it is, as in the table of the module.
        run: of which run; a word.
        sender: the site, or "coordinator".
        round: from 0; -1 before the first.
        body: what JSON takes.
        arrays: by name, of unsigned bytes, uint64 or float64.
    """

    kind: str
    run: str
    sender: str
    round: int = -1
    body: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)

    def encode(self) -> bytes:
        """The bytes that are sent."""
        parts = {
            name: array if array.dtype == np.uint8 else array.astype(array.dtype.newbyteorder("<"))
            for name, array in self.arrays.items()
        }
        header = {
            "format": FORMAT,
            "version": VERSION,
            "kind": self.kind,
            "run": self.run,
            "round": self.round,
            "sender": self.sender,
            "body": dict(self.body),
            "arrays": [
                {"name": name, "dtype": part.dtype.str, "shape": list(part.shape)}
                for name, part in parts.items()
            ],
        }
        text = json.dumps(header, ensure_ascii=False, allow_nan=False).encode()
        pieces = [part.tobytes() for part in parts.values()]
        return b"".join([_MAGIC, struct.pack("<I", len(text)), text, *pieces])

    @staticmethod
    def decode(content: bytes) -> Message:
        """The message in these bytes.

        Raises:
            FormatError: they are none, or of another version.
        """
        if len(content) < 8 or content[:4] != _MAGIC:
            raise FormatError("message: it does not begin as one does")
        (length,) = struct.unpack("<I", content[4:8])
        if length > min(_MOST_HEADER, len(content) - 8):
            raise FormatError("message: its header is cut off")
        try:
            header = json.loads(content[8 : 8 + length].decode())
            # an escape may stand for half a character, which no reply and no ledger could repeat
            json.dumps(header, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            raise FormatError("message: its header is no JSON") from None
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise FormatError("message: it is of another format")
        if header.get("version") != VERSION:
            raise FormatError(
                f"message: it has version {header.get('version')!r}, this jaxcd reads {VERSION}; "
                "use the same jaxcd everywhere"
            )
        kinds = {"kind": str, "run": str, "sender": str, "round": int, "body": dict, "arrays": list}
        for name, kind in kinds.items():
            if type(header.get(name)) is not kind:
                raise FormatError(f"message: its {name} is missing, or of another kind")
        arrays = _arrays(header["arrays"], content[8 + length :])
        return Message(
            header["kind"], header["run"], header["sender"], header["round"], header["body"], arrays
        )


def _arrays(entries: list[Any], content: bytes) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    place = 0
    for entry in entries:
        try:
            name, dtype, shape = str(entry["name"]), entry["dtype"], tuple(entry["shape"])
        except (KeyError, TypeError):
            raise FormatError("message: an array says no name, dtype and shape") from None
        if dtype not in _DTYPES or not all(type(k) is int and k >= 0 for k in shape):
            raise FormatError(f"message: the array {name!r} has an unknown dtype or shape")
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size > len(content) - place:
            raise FormatError(f"message: the array {name!r} is cut off")
        try:
            found[name] = np.frombuffer(content[place : place + size], dtype).reshape(shape)
        except ValueError:  # more dimensions, or longer ones, than an array has
            raise FormatError(f"message: the array {name!r} has no such shape") from None
        place += size
    if place != len(content):
        raise FormatError("message: it is longer than it says")
    return found
