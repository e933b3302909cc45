"""A dictionary that nobody can write to, for what results hold."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["FrozenDict"]


class FrozenDict(dict[Any, Any]):
    """A dict whose entries stay; it is equal to a dict with the same ones, and JSON, copies and
    pickles treat it as one.
    """

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("a result is frozen; make a dict of this one, and change that: dict(...)")

    __setitem__ = __delitem__ = __ior__ = _refuse  # type: ignore[assignment]
    clear = pop = popitem = setdefault = update = _refuse  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return (FrozenDict, (dict(self),))

    def __copy__(self) -> FrozenDict:
        return self
