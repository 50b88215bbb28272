"""Reports: what a study's records say. Reads records only and never imports JAX."""

from ib_bench.report.names import Column
from ib_bench.report.output import (
    finished_cells,
    print_table,
    to_csv,
    to_markdown,
    write_report,
)
from ib_bench.report.tables import Row, Table, nstar_table

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
