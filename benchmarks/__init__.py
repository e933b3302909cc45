"""Benchmarks: ``python -m benchmarks.priv_pc`` and ``python -m benchmarks.run_time``; see their
``--help``.
"""
