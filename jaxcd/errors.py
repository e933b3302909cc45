"""The exceptions of jaxcd: one small tree.

Every error that jaxcd raises on purpose derives from :class:`JaxcdError`.  Messages name the
argument, the value and the cure.  Messages of errors that can be raised during a private run depend
on public facts only (the domain, the number of rows, the options); errors about the content of the
data are raised when the data is read, to its owner.
"""

from __future__ import annotations


class JaxcdError(Exception):
    """Base class of every error that jaxcd raises on purpose."""


class OptionError(JaxcdError, ValueError):
    """An option (alpha, epsilon, a level, a mechanism's name, ...) is outside its range."""


class DataError(JaxcdError, ValueError):
    """The data cannot be read as its domain says; raised to the data's owner, at reading time."""


class DomainError(JaxcdError, ValueError):
    """A domain is malformed, or a test cannot be applied to columns of this kind."""


class GraphError(JaxcdError, ValueError):
    """A graph is malformed (a cycle, an unknown name, a mark out of range)."""


class FormatError(JaxcdError, ValueError):
    """A file (BIF, graph, domain) does not follow its format; the message names the line."""


class PrivacyError(JaxcdError):
    """A private run was asked for something that cannot be private."""


class SensitivityError(PrivacyError, ValueError):
    """A mechanism needs a statistic of bounded sensitivity and was given one that has none."""


class PrivacyWarning(UserWarning):
    """A budget is legal, and promises less than its owner may think; made from public facts
    alone.
    """


class BudgetExhausted(PrivacyError):
    """An event does not fit into what is left of the budget; nothing was drawn and nothing was
    charged.
    """
