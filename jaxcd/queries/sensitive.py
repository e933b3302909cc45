"""Numbers that have not been paid for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Sensitive"]


class Sensitive:
    """An array computed from the data that no mechanism has released: it does not print, compare or convert.

    Only a decider unwraps it (:meth:`expose`), to hand it to a mechanism, or to decide in a run without privacy.
    """

    __slots__ = ("_array",)

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __repr__(self) -> str:
        return "<sensitive>"

    def __bool__(self) -> bool:
        raise TypeError("a sensitive array has no truth value; a mechanism must decide")

    def __eq__(self, other: object) -> bool:
        raise TypeError("a sensitive array cannot be compared; a mechanism must decide")

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, index: Any) -> Sensitive:
        return Sensitive(self._array[index])

    def map(self, function: Callable[[np.ndarray], np.ndarray]) -> Sensitive:
        """The function of the array, still sensitive."""
        return Sensitive(function(self._array))

    def expose(self) -> np.ndarray:
        """The array itself: for the argument of a mechanism, or where no privacy was asked for."""
        return self._array
