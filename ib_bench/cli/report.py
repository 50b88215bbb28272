"""`ib_bench report --workdir=DIR`: prints the N* table of a study and writes it to the workdir."""

from collections.abc import Sequence

from absl import flags
from rich.console import Console

from ib_bench.report import finished_cells, nstar_table, print_table, write_report
from ib_bench.results import Store

_WORKDIR = flags.DEFINE_string("workdir", None, "Folder (or gs:// prefix) of the study.")


def main(argv: Sequence[str]) -> int:
    """Reads records only, so it may be called while a study runs."""
    if not _WORKDIR.value:
        raise ValueError("workdir: not set; name the study's folder with --workdir=DIR")
    if argv[1:]:
        raise ValueError(f"report: unexpected argument {argv[1]!r}; write flags as --workdir=DIR")
    store, console = Store(_WORKDIR.value), Console()
    print_table(nstar_table(finished_cells(store)), console)
    store.prepare()
    for path in write_report(store, store.workdir):
        console.print(f"wrote {path}", markup=False, highlight=False, soft_wrap=True)
    return 0
