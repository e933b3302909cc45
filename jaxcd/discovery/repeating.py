"""Searches on releases that can be repeated: what :func:`jaxcd.edge_confidence` does on fresh
releases.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from jaxcd.discovery.result import DiscoveryResult
from jaxcd.releases import Release

__all__ = ["repeatable"]

Search = TypeVar("Search", bound=Callable[..., Any])


def repeatable(search: Search) -> Search:
    """The search, whose result on a release holds the same search as a function of any release
    (``DiscoveryResult.again``).

    Args:
        search: a function of data or of a release, and of options by name.
    """

    @functools.wraps(search)
    def wrapped(data: Any, **options: Any) -> Any:
        result = search(data, **options)
        if isinstance(data, Release) and isinstance(result, DiscoveryResult):
            options.pop("progress", None)  # nobody asked for that of other releases
            return dataclasses.replace(result, again=functools.partial(wrapped, **options))
        return result

    return cast(Search, wrapped)
