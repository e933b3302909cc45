"""How strongly pairs depend, for searches that rank as well as decide; without privacy, or on a
release.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxcd.citests import CITest, FisherZ, GTest, Query
from jaxcd.data.rows import Rows
from jaxcd.errors import OptionError, PrivacyError
from jaxcd.queries import Session
from jaxcd.releases import Release

__all__ = ["associations", "usual_test"]


def associations(session: Session, queries: Sequence[Query]) -> np.ndarray:
    """The margins of some queries, float64 (n_queries,): above zero dependent at the session's
    level, and the larger the stronger.

    A query that cannot be evaluated counts as dependent, infinitely: nothing was found that
    separates the pair.  A pair that a search does not join (``Session.apart``) is not dependent.

    Raises:
        PrivacyError: in a private run: these are exact statistics.
    """
    if session.private:
        raise PrivacyError(
            "statistics of a private run are released by mechanisms only; use budget=NO_PRIVACY, "
            "or search a release"
        )
    strengths = np.full(len(queries), np.inf)
    places = [place for place, query in enumerate(queries) if session.admissible(query)]
    strengths[places] = session.margins([queries[place] for place in places]).expose()
    apart = session.apart
    strengths[[(query.x, query.y) in apart for query in queries]] = -np.inf
    return strengths


def usual_test(data: Rows | Release) -> CITest:
    """The test of a run without privacy, or on a release, where none is given: G for discrete
    columns, else Fisher's z; of a release that does not answer it the first that it does.  Public.

    Raises:
        OptionError: the release answers no test.
    """
    usual = GTest() if data.domain.is_discrete else FisherZ()
    answered = list(data.tests()) if isinstance(data, Release) else [type(usual)]
    if not answered:
        assert isinstance(data, Release)
        raise OptionError(
            f"test: a release of {data.kind.replace('-', ' ')} answers none; search it by its score"
        )
    return usual if type(usual) in answered else answered[0]()
