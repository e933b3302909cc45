"""The site that a row is from, as a column that nothing causes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from jaxcd.checks import check_listed, shown_list
from jaxcd.data.columns import Categorical
from jaxcd.data.dataset import Dataset
from jaxcd.data.domain import Domain
from jaxcd.errors import OptionError

__all__ = ["with_site", "with_site_column"]


def with_site_column(domain: Domain, sites: Sequence[str], *, column: str = "site") -> Domain:
    """The domain with the site as a last column, a context.

    Args:
        domain: of the sites.
        sites: their names, in the order of the levels.
        column: its name, none of the domain's.

    Raises:
        OptionError: the column is one of the domain.
        DomainError: the sites are no column's levels.
    """
    sites = check_listed("sites", sites)
    if column in domain:
        raise OptionError(f"column = {column!r} is a column of the domain; give another name")
    return dataclasses.replace(
        domain,
        columns={**domain.columns, column: Categorical(tuple(sites))},
        interventions={**domain.interventions, column: {}},
    )


def with_site(data: Dataset, name: str, sites: Sequence[str], *, column: str = "site") -> Dataset:
    """The rows of a site, with its name in one more column.

    Args:
        data: of discrete columns.
        name: of the site.
        sites: all of them.
        column: its name.

    Raises:
        OptionError: the site is none of them, or the column is one of the domain.
        DomainError: the sites are no column's levels, or a column is numeric.

    Example:
        >>> import jax, jaxcd
        >>> from jaxcd.federated import with_site
        >>> rows = jaxcd.networks.load("cancer").sample(10, key=jax.random.key(0))
        >>> with_site(rows, "north", ("north", "south")).domain.names[-1]
        'site'
    """
    sites = check_listed("sites", sites)
    domain = with_site_column(data.domain, sites, column=column)
    if name not in sites:
        raise OptionError(
            f"name = {name!r} is not a site; they are {shown_list(list(map(str, sites)))}"
        )
    codes = np.full((data.n_samples, 1), sites.index(name), dtype=np.int32)
    rows = Dataset.from_codes(np.column_stack([data.discrete, codes]), domain=domain)
    return dataclasses.replace(rows, people=data.people).reading(data.missing)
