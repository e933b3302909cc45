"""Reports of a discovery, for people and for programs."""

from jaxcd.report.contents import graph_json, grouped_ledger, metrics_json
from jaxcd.report.files import FILES, check_folder, write_report
from jaxcd.report.reading import read_result

__all__ = [
    "FILES",
    "check_folder",
    "graph_json",
    "grouped_ledger",
    "metrics_json",
    "read_result",
    "write_report",
]
