"""Queries, the batched queue, and the session that holds the data."""

from jaxcd.citests import Query
from jaxcd.queries.queue import Queue
from jaxcd.queries.sensitive import Sensitive
from jaxcd.queries.session import Session

__all__ = ["Query", "Queue", "Sensitive", "Session"]
