"""The command line: ``jaxcd discover``, ``recommend``, ``direction``, ``privatize``, ``domain``,
``guarantees``.
"""

from jaxcd.cli.app import main

__all__ = ["main"]
