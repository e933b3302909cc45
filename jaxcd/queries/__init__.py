"""Queries, the batched queue, and the session that holds the data."""

from jaxcd.citests import Query
from jaxcd.queries.queue import Queue
from jaxcd.queries.session import Session, Subsample

__all__ = ["Query", "Queue", "Session", "Subsample"]
