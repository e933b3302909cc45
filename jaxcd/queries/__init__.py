"""The door to the data, queries on it, and the batched queue that answers them."""

from jaxcd.citests import Query
from jaxcd.queries.door import Door
from jaxcd.queries.queue import Queue
from jaxcd.queries.session import Session, Subsample

__all__ = ["Door", "Query", "Queue", "Session", "Subsample"]
