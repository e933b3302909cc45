"""jaxcd: differentially private causal discovery, with its numerical core compiled by JAX.

The one public list.  The usual way in:

>>> import jax, jaxcd
>>> data = jaxcd.networks.load("cancer").sample(2_000, key=jax.random.key(0))
>>> run = jaxcd.pc(data, test=jaxcd.ChiSquare(), decider=jaxcd.Threshold(), budget=jaxcd.NO_PRIVACY, key=None)
>>> run.graph.names
('Pollution', 'Smoker', 'Cancer', 'Xray', 'Dyspnoea')
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any

__version__ = "0.1.0"


def _public() -> dict[str, tuple[str, str]]:
    """Where each public name is: module and attribute, from the imports of the stub ``__init__.pyi``."""
    found = {}
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            found.update({alias.asname or alias.name: (str(node.module), alias.name) for alias in node.names})
    return found


_PUBLIC = _public()
__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    """Loads a public name when it is first asked for: importing jaxcd loads nothing else."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'jaxcd' has no attribute {name!r}")
    module, attribute = _PUBLIC[name]
    value = importlib.import_module(f"jaxcd.{name}") if module == "jaxcd" else getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
