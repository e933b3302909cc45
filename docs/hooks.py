"""What mkdocs builds beside the files of this folder: the pages of the repository's top level, a
page for every room of the package, and the docstrings as Markdown.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import textwrap
from pathlib import Path

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import jaxcd

TOP = {
    "index.md": "README.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
}
#: Pictures beside the files, named there by this path from the folder of this file.
PICTURES = {"calibration.png": "../benchmarks/results/calibration.png"}
#: What is not on the site is named without a link.
OUTSIDE = re.compile(r"(?<!!)\[([^]]+)\]\((?:\.\./)?((?:benchmarks|notebooks)/[^)]+)\)")
ROLE = re.compile(r":(?:class|func|meth|mod|data|attr|exc|obj):`~?([^`]+)`")
PROMPT = re.compile(r"(?:^(?P<pad> *)>>> .*\n(?:(?P=pad).*\S.*(?:\n|\Z))*)", re.MULTILINE)
EDGE = re.compile(r"(?<!\w)_|_(?!\w)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    folder = Path(config.config_file_path).parent
    for name, source in TOP.items():
        text = (folder / source).read_text(encoding="utf-8").replace("](docs/", "](")
        # A list's paragraphs are three spaces deep in the files, four in this Markdown.
        text = re.sub(r"^ {3}(?=\S)", " " * 4, text, flags=re.MULTILINE)
        files.append(File.generated(config, name, content=text))
    for name, source in PICTURES.items():
        files.append(File.generated(config, name, abs_src_path=str(folder / "docs" / source)))
    index = "# Reference\n\n" + "\n".join(map(row, jaxcd.__all__))
    files.append(File.generated(config, "reference/index.md", content=index))
    for room in set(re.findall(r"reference/(\w+)\.md", str(config.nav))) - {"index"}:
        files.append(
            File.generated(config, f"reference/{room}.md", content=reference_page(f"jaxcd.{room}"))
        )
    return files


def on_page_markdown(text: str, page: Page, **_: object) -> str:
    """Pictures where the site has them; research notes, written line by line: tables, lists and
    statements become paragraphs.
    """
    for name, source in PICTURES.items():
        text = text.replace(f"]({source})", f"]({name})")
    text = OUTSIDE.sub(r"\1 (`\2`)", text)
    if page.file.src_uri not in ("PRIVACY.md", "NONLINEAR.md"):
        return text
    text = re.sub(r"\n(?= {0,3}(?:\*\*|\d\. |- ))|(?<!\|)\n(?=\|)", "\n\n", text)
    return "".join(EDGE.sub(r"\\_", part) for part in re.split(r"(`[^`]*`)", text))


def reference_page(room: str) -> str:
    """The public names of a room, then what its files say about method and proof."""
    module = importlib.import_module(room)
    public = getattr(module, "__all__", True)
    text = f"# {room}\n\n::: {room}\n    options:\n      show_root_heading: false\n"
    text += "      show_root_toc_entry: false\n"
    text += f"      members: {public if public is True else list(public)}\n"
    for file in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{room}."):
        inner = importlib.import_module(file.name)
        if inspect.getdoc(inner) and "._" not in file.name:
            elsewhere = set(getattr(inner, "__all__", ())) & set(jaxcd.__all__) - set(public)
            text += (
                f"\n::: {file.name}\n    options:\n      members: {sorted(elsewhere) or False}\n"
            )
    return text


def row(name: str) -> str:
    """A line of the list of public names: the name and what it is in a sentence."""
    value = getattr(jaxcd, name)
    summary = (inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " ")
    place = value.__name__ if inspect.ismodule(value) else f"jaxcd.{name}"
    return f"- [`{name}`][{place}]: {markdown(summary, None)}"


def link(name: str, scope: griffe.Object | None) -> str:
    """A link to what a role names, or the name alone where the site does not show it."""
    try:
        place = name if name.startswith("jaxcd") or scope is None else scope.resolve(name)
    except griffe.NameResolutionError:
        return f"<code>{name}</code>"
    return f'<autoref identifier="{place}" optional><code>{name}</code></autoref>'


def markdown(text: str, scope: griffe.Object | None) -> str:
    """A docstring as Markdown: roles are links, and the signs of formulas stay themselves."""
    text = PROMPT.sub(lambda m: f"{m['pad']}```pycon\n{m[0].rstrip()}\n{m['pad']}```\n", text)
    blocks, section = re.split(r"\n\s*\n", text), ""
    for k, block in enumerate(blocks):
        if not block.startswith(" "):
            titled = re.match(r"([A-Z][a-z]+):\n", block)
            section = titled[1] if titled else ""
        # Formulas stand in blocks of their own, four spaces deeper than the text.
        deep = 12 if section in ("Args", "Raises", "Attributes") else 8 if section else 4
        if len(block) - len(block.lstrip(" ")) < deep:
            parts = re.split(r"(```.*?```|``.*?``|:\w+:`.*?`|`.*?`)", block, flags=re.DOTALL)
            parts = [escaped(part, scope) for part in parts]
            if section == "Returns":  # what stands before a colon would be read as a type
                parts = [re.sub(r"^`+([^`]*:[^`]*)`+$", r"<code>\1</code>", part) for part in parts]
                parts = [re.sub(r":(?!\n)", "&#58;", part) for part in parts]
            blocks[k] = "".join(parts)
        if section == "Source":
            blocks[k] = "**Source:** " + textwrap.dedent(block.partition("\n")[2])
    return "\n\n".join(blocks)


def escaped(part: str, scope: griffe.Object | None) -> str:
    if role := ROLE.fullmatch(part):
        return link(role[1], scope)
    if part.startswith("`"):
        return part
    part = re.sub(r"::$", ":", part.replace("<", "&lt;"), flags=re.MULTILINE)
    return re.sub(r"^( *)#", r"\1\\#", EDGE.sub(r"\\_", part), flags=re.MULTILINE)


class Dialect(griffe.Extension):
    """Docstrings as Markdown, before they are parsed."""

    def on_package(self, *, pkg: griffe.Module, **_: object) -> None:
        self.visit(pkg)

    def visit(self, item: griffe.Object) -> None:
        if item.docstring:
            item.docstring.value = markdown(item.docstring.value, item)
        for member in item.members.values():
            if not member.is_alias:
                self.visit(member)
