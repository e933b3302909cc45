"""Whether the bytes of a csv file are laid out as they should be: a look at every byte, 64 at once.

A file is *proper* where both readers take it for the same cells (RFC 4180): it is UTF-8 text;
quotes stand around whole cells, and are doubled within them; no line is blank, and no record very
long.  Line breaks may stand within quotes.

The bytes of each kind become bits, 64 to a word, so that a step of the rule is one operation on a
word.  Whether a byte stands within quotes is whether the number of quotes up to it is odd: sums
without carry of a word's bits (Langdale, Lemire, Parsing gigabytes of JSON per second, VLDB J. 28,
2019, section 3.1).
"""

from __future__ import annotations

import codecs
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Layout", "layout_of"]

PIECE = 1 << 18  # bytes, a multiple of 64; what is made of them stays in the processor's cache
# Words.  A record ends in each run of so many: strict reading refuses a cell of 131,072 bytes.
_RUN = 1 << 10
_ONE = np.uint64(1)
_LAST = np.uint64(63)
_Bits = NDArray[np.uint64]


class Layout(NamedTuple):
    """What a look at a file says.

    Args:
        is_proper: whether it may be read fast.
        has_breaks: whether cells hold line breaks.
    """

    is_proper: bool
    has_breaks: bool


_IMPROPER = Layout(False, False)


def layout_of(file: IO[bytes]) -> Layout:
    """Looks at a whole file, piece by piece.

    Args:
        file: opened for reading bytes, at its start.
    """
    memory = bytearray(PIECE)
    look = _Look()
    while size := _filled(file, memory):
        if not look.at(memory, size):
            return _IMPROPER
    return Layout(look.ends_well(), look.has_breaks)


def _filled(file: IO[bytes], memory: bytearray) -> int:
    """Fills the memory up as far as the file goes; how far that is."""
    size = 0
    view = memoryview(memory)
    while size < len(memory) and (more := file.readinto(view[size:])):  # type: ignore[attr-defined]
        size += more
    return size


class _Look:
    """What is known of the bytes so far.

    Of each kind of byte the last bit is kept, because the rules are about neighbours.
    """

    def __init__(self) -> None:
        self.has_breaks = False
        self._text = codecs.getincrementaldecoder("utf-8")()
        self._is_open = np.uint64(0)
        self._kept = dict.fromkeys(("closed", "returned", "blank"), np.uint64(0))
        self._kept |= dict.fromkeys(("apart", "ended"), _ONE)  # the file begins as a line does
        self._last = 0  # byte

    def at(self, memory: bytearray, size: int) -> bool:
        """Takes in a piece, the last one if it is short; whether the file is still proper."""
        piece = np.frombuffer(memory, np.uint8)
        piece[size:] = ord("x")
        self._last = memory[size - 1]
        return (
            memory.find(b"\0", 0, size) < 0
            and self._is_utf8(memory, piece, size)
            and self._is_laid_out(piece, size)
        )

    def ends_well(self) -> bool:
        """Whether the file may end here."""
        try:
            self._text.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
        return not self._is_open and self._last != ord("\r")

    def _is_utf8(self, memory: bytearray, piece: NDArray[np.uint8], size: int) -> bool:
        if piece.max() < 128 and not self._text.getstate()[0]:
            return True
        try:
            self._text.decode(bytes(memory[:size]))
        except UnicodeDecodeError:
            return False
        return True

    def _is_laid_out(self, piece: NDArray[np.uint8], size: int) -> bool:
        quotes, lines, returns = (_bits(piece == ord(byte)) for byte in '"\n\r')
        within = self._within(quotes)
        opens, closes = quotes & within, quotes & ~within
        apart = _bits(piece == ord(",")) | lines | quotes
        ends = lines & ~within
        self.has_breaks |= bool((lines & within).any())
        returns &= ~within
        behind_end = self._behind("ended", ends)
        behind_return = self._behind("returned", returns)
        wrong = opens & ~self._behind("apart", apart)
        wrong |= self._behind("closed", closes) & ~(apart | returns)
        wrong |= behind_return & ~lines
        wrong |= ends & (behind_end | self._behind("blank", returns & behind_end))
        if size < len(piece):
            wrong &= _first(size, len(wrong))
        if wrong.any():
            return False
        runs = ends[: size // 64 // _RUN * _RUN].reshape(-1, _RUN)
        return bool((runs != 0).any(axis=1).all())

    def _within(self, quotes: _Bits) -> _Bits:
        """Which bytes follow an odd number of quotes, their own among them."""
        odd = quotes.copy()
        for shift in (1, 2, 4, 8, 16, 32):
            odd ^= odd << np.uint64(shift)
        parities = np.bitwise_xor.accumulate(odd >> _LAST)
        before = np.concatenate([[self._is_open], parities[:-1] ^ self._is_open])
        self._is_open ^= parities[-1]
        return odd ^ (np.uint64(0) - before)

    def _behind(self, name: str, bits: _Bits) -> _Bits:
        """Which bytes follow one of these."""
        moved = bits << _ONE
        moved[1:] |= bits[:-1] >> _LAST
        moved[0] |= self._kept[name]
        self._kept[name] = bits[-1] >> _LAST
        return moved


def _bits(mask: NDArray[np.bool_]) -> _Bits:
    """A bit for each byte, in words of 64, the first byte the lowest bit."""
    return np.packbits(mask, bitorder="little").view("<u8")


def _first(size: int, n_words: int) -> _Bits:
    """Bits for the first bytes only."""
    return _bits(np.arange(64 * n_words) < size)
