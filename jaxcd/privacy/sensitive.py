"""Numbers that have not been paid for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import PrivacyError

__all__ = ["Sensitive", "exact_values"]


class Sensitive:
    """An array computed from the data that no mechanism has released: it does not print, compare
    or convert.

    Mechanisms take it as it is, and put noise on it once the ledger was charged.  In a run without
    privacy (``open_to_all``) it can be looked at (:meth:`expose`); in a private run it cannot, and
    what is computed from it (:meth:`map`, :meth:`groups`) is as sensitive.

    Args:
        array: the numbers.
        open_to_all: whether the run is without privacy.
    """

    __slots__ = ("_array", "_open")

    def __init__(self, array: Any, *, open_to_all: bool = False) -> None:
        self._array = array
        self._open = open_to_all

    def __repr__(self) -> str:
        return "<sensitive>"

    def __bool__(self) -> bool:
        raise TypeError("a sensitive array has no truth value; a mechanism must decide")

    def __eq__(self, other: object) -> bool:
        raise TypeError("a sensitive array cannot be compared; a mechanism must decide")

    __hash__ = None  # type: ignore[assignment]

    def __copy__(self) -> Sensitive:
        return self

    def __deepcopy__(self, memo: Any) -> Sensitive:
        return self

    def __reduce__(self) -> Any:
        raise TypeError("a sensitive array cannot be pickled; a mechanism must release it")

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, index: Any) -> Sensitive:
        return Sensitive(self._array[index], open_to_all=self._open)

    def map(self, function: Callable[[Any], Any]) -> Sensitive:
        """The function of the array, still sensitive; what it returns need not be an array."""
        return Sensitive(function(self._array), open_to_all=self._open)

    def groups(self, sizes: Sequence[int]) -> list[Sensitive]:
        """The array cut into pieces of these (public) sizes."""
        return [
            self[end - size : end]
            for size, end in zip(sizes, np.cumsum(sizes).tolist(), strict=True)
        ]

    @staticmethod
    def joined(parts: Sequence[Sensitive], function: Callable[..., Any]) -> Sensitive:
        """The function of several arrays, as sensitive as the most sensitive of them."""
        return Sensitive(
            function(*(part._array for part in parts)),
            open_to_all=all(part._open for part in parts),
        )

    def expose(self) -> Any:
        """The array itself, where no privacy was asked for.

        Raises:
            PrivacyError: in a private run: a mechanism must release it.
        """
        if not self._open:
            raise PrivacyError(
                "a sensitive array of a private run is released by mechanisms only: give it to "
                "laplace, gaussian or select_max"
            )
        return self._array


def exact_values(values: Sensitive | ArrayLike) -> NDArray[Any]:
    """The exact values that a mechanism is about to put noise on; for mechanisms only."""
    return values._array if isinstance(values, Sensitive) else np.asarray(values)
