"""`ib_bench report --workdir=DIR`: prints a study's N* and writes its whole report.

Several workdirs are one report: --workdir=A --workdir=B --out=DIR.
"""

from collections.abc import Sequence

from absl import flags
from etils import epath
from rich.console import Console

from ib_bench.report import (
    missing_packages,
    nstar_table,
    print_table,
    read_study,
    write_full_report,
)
from ib_bench.results import Store

_WORKDIR = flags.DEFINE_multi_string(
    "workdir", None, "Folder (or gs:// prefix) of a study; may be given several times."
)
_OUT = flags.DEFINE_string("out", None, "Where the report is written; the workdir if not given.")


def main(argv: Sequence[str]) -> int:
    """Reads records only, so it may be called while a study runs."""
    if not _WORKDIR.value or not all(_WORKDIR.value):
        raise ValueError("workdir: not set; name the study's folder with --workdir=DIR")
    if argv[1:]:
        raise ValueError(f"report: unexpected argument {argv[1]!r}; write flags as --workdir=DIR")
    if len(_WORKDIR.value) > 1 and not _OUT.value:
        raise ValueError(
            "out: not set; say with --out=DIR where the report of several workdirs goes"
        )
    stores, console = [Store(workdir) for workdir in _WORKDIR.value], Console()
    study = read_study(stores)
    print_table(nstar_table(study.cells), console)
    out = Store(_OUT.value or _WORKDIR.value[0])
    out.prepare()
    title = ", ".join(epath.Path(workdir).name or workdir for workdir in _WORKDIR.value)
    for path in write_full_report(study, out.workdir, title):
        console.print(f"wrote {path}", markup=False, highlight=False, soft_wrap=True)
    if missing := missing_packages():
        console.print(
            f"not written: index.html and figures/, which need {' and '.join(missing)}; "
            "install them with: .venv/bin/python -m pip install -e '.[report]'",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    return 0
