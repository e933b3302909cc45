"""jaxcd: differentially private causal discovery, with its numerical core compiled by JAX.

The one public list.  The usual way in:

>>> import jax, jaxcd
>>> data = jaxcd.networks.load("cancer").sample(2_000, key=jax.random.key(0))
>>> run = jaxcd.pc(
...     data, test=jaxcd.ChiSquare(), decider=jaxcd.Threshold(), budget=jaxcd.NO_PRIVACY, key=None
... )
>>> run.graph.names
('Pollution', 'Smoker', 'Cancer', 'Xray', 'Dyspnoea')
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any

__version__ = "0.2.0.dev0"

_MOVED = {
    "jaxcd.advice": "Plan Recommendation",
    "jaxcd.citests": "BoughtBandwidths Null",
    "jaxcd.data": "BayesianNetwork structural",
    "jaxcd.decisions": "Noise TreeOptions",
    "jaxcd.discovery": "ColliderRule ConflictRule EdgeConfidence dag_to_pag decision_confidence "
    "mag_to_pag",
    "jaxcd.errors": "BudgetExhausted DataError DomainError FormatError GraphError JaxcdError "
    "OptionError PrivacyError SensitivityError",
    "jaxcd.pairwise": "Direction HSICScore KendallScore LogIQRScore PairResult Protect "
    "ScoreRelease SpearmanScore anm_batch",
    "jaxcd.privacy": "Ledger PrivacyCost Receipt Relation SecureNoise",
}
"""Names that stood here before they moved to their rooms: they work in this version, warn in the
next, and go with the one after.
"""


def _public() -> tuple[dict[str, tuple[str, str]], list[str]]:
    """Where each name is (module and attribute), and the public list: from the stub
    ``__init__.pyi``.
    """
    found, listed = {}, []
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            found.update(
                {alias.asname or alias.name: (str(node.module), alias.name) for alias in node.names}
            )
        elif isinstance(node, ast.Assign):
            listed = ast.literal_eval(node.value)
    return found, listed


_PLACES, __all__ = _public()


def __getattr__(name: str) -> Any:
    """Loads a public name when it is first asked for: importing jaxcd loads nothing else."""
    if name in _PLACES:
        module, attribute = _PLACES[name]
        value = (
            importlib.import_module(f"jaxcd.{name}")
            if module == "jaxcd"
            else getattr(importlib.import_module(module), attribute)
        )
        globals()[name] = value
        return value
    for module, names in _MOVED.items():
        if name in names.split():
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'jaxcd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
