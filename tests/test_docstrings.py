"""The docstrings of public names: one dialect, every argument described, an example that runs.

The dialect is Google's: a summary, free text with the formula, then the sections of ``SECTIONS`` in
this order.  ``pytest --doctest-modules jaxcd`` runs the examples.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import jaxcd

ROOT = Path(jaxcd.__file__).parent
SECTIONS = ("Args", "Attributes", "Returns", "Raises", "Guarantee", "Source", "Example")
CALLABLE = [name for name in jaxcd.__all__ if callable(getattr(jaxcd, name))]


def rooms() -> Iterator[tuple[str, Any]]:
    """Every class and function in the public list of a room, by its full name."""
    for _, name, is_package in pkgutil.iter_modules([str(ROOT)], "jaxcd."):
        room = importlib.import_module(name) if is_package else None
        for public in getattr(room, "__all__", ()):
            value = getattr(room, public)
            if inspect.isclass(value) or inspect.isfunction(value):
                yield f"{name}.{public}", value


def own_docstring(value: Any) -> str:
    """The docstring of a function, or of a class that does not inherit it."""
    text = value.__doc__ if inspect.isfunction(value) else vars(value).get("__doc__")
    assert text, "no docstring"
    return str(text)


def sections(text: str) -> dict[str, str]:
    """The sections of a docstring, each without its indentation; "" is what stands before."""
    found: dict[str, list[str]] = {"": []}
    here = ""
    for line in inspect.cleandoc(text).splitlines():
        titled = re.fullmatch(r"([A-Z][a-z]+):", line)
        if titled and titled.group(1) in SECTIONS:
            here = titled.group(1)
            assert here not in found, f"two sections {here}"
            found[here] = []
        else:
            assert not here or not line or line.startswith("    "), f"after {here}: {line!r}"
            found[here].append(line[4:] if here else line)
    assert list(found)[1:] == sorted(list(found)[1:], key=SECTIONS.index)
    return {name: "\n".join(lines).strip() for name, lines in found.items()}


def entries(section: str) -> list[str]:
    """The names that a section of ``name: text`` describes."""
    return re.findall(r"^(\w+): \S", section, re.MULTILINE)


def parameters(value: Any) -> list[str]:
    """What an object is called with; nothing for an enumeration, which is not called."""
    if inspect.isclass(value) and issubclass(value, enum.Enum):
        return []
    found = inspect.signature(value).parameters.values()
    return [one.name for one in found if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]


@pytest.mark.parametrize("name", CALLABLE)
def test_public_docstrings_are_complete(name: str) -> None:
    value = getattr(jaxcd, name)
    parts = sections(own_docstring(value))
    summary = parts[""].partition("\n\n")[0]
    assert summary.endswith("."), f"the summary is no sentence: {summary!r}"
    assert entries(parts.get("Args", "")) == parameters(value)
    if inspect.isfunction(value):
        assert parts.get("Returns"), "no Returns section"
    said = parts.get("Guarantee", "")
    # A guarantee is stated, or is that of something else, which post-processing keeps.
    if said and not re.match(r"(On a release )?[Tt]hat of ", said):
        missing = [w for w in ("relation", "ensitivity", "vent", "ublic") if w not in said.lower()]
        assert not missing, f"the guarantee does not say {missing}"
    assert ">>> " in parts.get("Example", ""), "no example"
    assert re.search(r"^(?!>>>|\.\.\.)\S", parts["Example"], re.MULTILINE), "it shows nothing"


def test_public_modules_and_constants_have_docstrings() -> None:
    others = [getattr(jaxcd, name) for name in jaxcd.__all__ if name not in CALLABLE]
    for value in others:
        assert inspect.getdoc(value)
        for public in getattr(value, "__all__", ()) if isinstance(value, ModuleType) else ():
            assert inspect.getdoc(getattr(value, public)), f"{value.__name__}.{public}"


@pytest.mark.parametrize(("name", "value"), [pytest.param(*room, id=room[0]) for room in rooms()])
def test_docstrings_of_rooms_are_in_the_dialect(name: str, value: Any) -> None:
    parts = sections(own_docstring(value))
    described = entries(parts.get("Args", "") or parts.get("Attributes", ""))
    assert len(described) == len(set(described))
    missing = set(parameters(value)) - set(described)
    assert not missing, f"nothing is said of {missing}"


def test_the_site_has_a_page_for_the_room_of_every_public_name() -> None:
    nav = (Path(__file__).parents[1] / "mkdocs.yml").read_text(encoding="utf-8")
    pages = set(re.findall(r"reference/(\w+)\.md", nav))
    values = [getattr(jaxcd, name) for name in CALLABLE]
    places = {value.__module__.split(".")[1] for value in values}
    assert places <= pages, f"mkdocs.yml names no page of {sorted(places - pages)}"


def test_there_is_one_dialect() -> None:
    old = re.compile(
        r"^ *(Guarantee|Parameters|Returns|Raises)\n *-{3,}|\*\*Guarantee|^ *Source: ", re.M
    )
    for path in sorted(ROOT.rglob("*.py")):
        assert not (found := old.search(path.read_text(encoding="utf-8"))), (path, found)
