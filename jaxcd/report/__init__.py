"""Reports of a discovery, for people and for programs."""

from jaxcd.report.files import (
    FILES,
    check_folder,
    graph_json,
    grouped_ledger,
    metrics_json,
    write_report,
)

__all__ = ["FILES", "check_folder", "graph_json", "grouped_ledger", "metrics_json", "write_report"]
