"""Planting a bug: words in the source of one function are replaced, and the function's code while
it is planted: the mistake that an editor's slip would be.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

__all__ = ["EXACT", "RANKS", "Bug", "planted"]

EXACT = "__import__('jaxcd.privacy.sensitive', fromlist=['exact_values']).exact_values"
"""For what a bug puts in: exact values without a mechanism, where nothing is imported for it."""
RANKS = "__import__('jaxcd.privacy.rank_maps', fromlist=['exact_rank']).exact_rank"
"""As EXACT, for ranks that follow the records."""


@dataclass(frozen=True)
class Bug:
    """A mistake in one function.

    Args:
        name: short; what :mod:`jaxcd.privacy.registry` refers to.
        where: ``module:function`` or ``module:Class.method``, from ``jaxcd``.
        old: words of its source that stand there once, and what stands there instead.
        new: as ``old``.
        check: the name of the check that must find it (of ``jaxcd.audit.CHECKS``).
    """

    name: str
    where: str
    old: str
    new: str
    check: str


@contextlib.contextmanager
def planted(bug: Bug) -> Iterator[None]:
    """While entered, the function has the bug.

    Args:
        bug: of :data:`jaxcd.audit.BUGS`.

    Returns:
        A context manager.
    """
    module_name, _, path = bug.where.partition(":")
    module = importlib.import_module(f"jaxcd.{module_name}")
    function = _function(module, path)
    source = textwrap.dedent(inspect.getsource(function))
    words = re.findall(r"\w+|[^\w\s]", bug.old)  # however the lines are broken
    changed, times = re.subn(r"\s*".join(map(re.escape, words)), lambda _: bug.new, source)
    if times != 1:
        raise ValueError(
            f"{bug.name}: {bug.old!r} stands {times} times in {bug.where}, and not once"
        )
    before = function.__code__
    _clear_caches(module)
    function.__code__ = _compiled(changed, function)
    try:
        yield
    finally:
        function.__code__ = before
        _clear_caches(module)


def _function(module: Any, path: str) -> FunctionType:
    part = module
    for name in path.split("."):
        part = inspect.getattr_static(part, name)
    if isinstance(part, property):
        part = part.fget
    part = inspect.unwrap(getattr(part, "__func__", part))
    if not isinstance(part, FunctionType):
        raise TypeError(f"{path} of {module.__name__} is no function")
    return part


def _compiled(source: str, function: FunctionType) -> CodeType:
    """The code of the function that the source defines, with the same names from outside."""
    tree = ast.parse(source)
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    # super() needs its class: the function is compiled inside one that has these names
    if function.__code__.co_freevars:
        shell = ast.parse(f"def shell({', '.join(function.__code__.co_freevars)}):\n pass").body[0]
        assert isinstance(shell, ast.FunctionDef)
        shell.body = [definition]
        tree.body = [shell]
    head = ast.parse("from __future__ import annotations").body
    code = compile(
        ast.fix_missing_locations(ast.Module([*head, *tree.body], [])),
        inspect.getfile(function),
        "exec",
    )
    return _find(code, definition.name)


def _find(code: CodeType, name: str) -> CodeType:
    for part in code.co_consts:
        if isinstance(part, CodeType):
            if part.co_name == name:
                return part
            with contextlib.suppress(LookupError):
                return _find(part, name)
    raise LookupError(name)


def _clear_caches(module: Any) -> None:
    """Forget what functions of the package have kept."""
    for name in [name for name in sys.modules if name.startswith("jaxcd.")]:
        for value in list(vars(sys.modules[name]).values()):
            if callable(clear := getattr(value, "cache_clear", None)) and not isinstance(
                value, type
            ):
                clear()
