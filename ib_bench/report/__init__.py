"""Reports: what a study's records say. Reads records only and never imports JAX."""

from ib_bench.report.tables import (
    Column,
    Row,
    Table,
    finished_cells,
    nstar_table,
    print_table,
    to_csv,
    to_markdown,
    write_report,
)

__all__ = [
    "Column",
    "Row",
    "Table",
    "finished_cells",
    "nstar_table",
    "print_table",
    "to_csv",
    "to_markdown",
    "write_report",
]
