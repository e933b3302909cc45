"""Data: declared domains, data sets, readers, and Bayesian networks to sample from."""

from __future__ import annotations

from jaxcd.data import networks, structural
from jaxcd.data.dataset import Dataset
from jaxcd.data.domain import Binned, Categorical, Domain, Numeric, Ordinal
from jaxcd.data.missing import Missing
from jaxcd.data.networks import BayesianNetwork
from jaxcd.data.readers import read_csv
from jaxcd.data.shards import Shards
from jaxcd.data.table import Table

__all__ = [
    "BayesianNetwork",
    "Binned",
    "Categorical",
    "Dataset",
    "Domain",
    "Missing",
    "Numeric",
    "Ordinal",
    "Shards",
    "Table",
    "networks",
    "read_csv",
    "structural",
]
