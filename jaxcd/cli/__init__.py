"""The command line: ``jaxcd discover``, ``jaxcd domain``, ``jaxcd guarantees``."""

from jaxcd.cli.app import main

__all__ = ["main"]
