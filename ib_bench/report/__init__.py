"""Reports: what a study's records say. Reads records only and never imports JAX."""

from ib_bench.report.folder import missing_packages, write_full_report
from ib_bench.report.names import Column
from ib_bench.report.output import (
    finished_cells,
    print_table,
    to_csv,
    to_markdown,
    write_report,
)
from ib_bench.report.study import Study, make_study, read_study
from ib_bench.report.tables import Row, Table, nstar_table

__all__ = [
    "Column",
    "Row",
    "Study",
    "Table",
    "finished_cells",
    "make_study",
    "missing_packages",
    "nstar_table",
    "print_table",
    "read_study",
    "to_csv",
    "to_markdown",
    "write_full_report",
    "write_report",
]
