"""The folder of a report: its Markdown, CSV, figures and page, from a study's records."""

import importlib.util
import os

from etils import epath

from ib_bench.files import write_whole
from ib_bench.report import output, sheet
from ib_bench.report.claims import check_claims, claims_sheet, comparisons_sheet
from ib_bench.report.page import make_page
from ib_bench.report.paper_tables import paper_sheet, paper_tables
from ib_bench.report.sharing_table import sharing_intervals, sharing_sheet
from ib_bench.report.study import Study
from ib_bench.report.tables import nstar_table

_PACKAGES = {"altair": "altair", "vl_convert": "vl-convert-python"}  # module -> its package


def missing_packages() -> list[str]:
    """Returns what is not installed of all that figures and the page need."""
    return [name for module, name in _PACKAGES.items() if importlib.util.find_spec(module) is None]


def write_full_report(study: Study, directory: str | os.PathLike, title: str) -> list[epath.Path]:
    """Writes every file of the report; returns their paths.

    index.html and figures/ need the packages of the extra `report`; without those everything else
    is written.
    """
    claims = check_claims(study.cells)
    sharing = sharing_intervals(study)
    nstar = output.nstar_sheet(nstar_table(study.cells))
    shared = sharing_sheet(study, sharing)
    paper, tables = paper_sheet(study), paper_tables(study)
    files = {
        "nstar.md": sheet.to_markdown(nstar),
        "nstar.csv": output.to_csv(study.cells),
        "claims.md": sheet.to_markdown(claims_sheet(study.cells, claims)),
        "claims.csv": sheet.to_csv(comparisons_sheet(claims)),
        "sharing.md": sheet.to_markdown(shared),
        "sharing.csv": sheet.to_csv(shared),
        "paper.md": sheet.to_markdown(paper),
        "paper.csv": sheet.to_csv(paper),
        **{f"tables/{table.name}.md": sheet.to_markdown(table) for table in tables},
        **{f"tables/{table.name}.csv": sheet.to_csv(table) for table in tables},
    }
    if not missing_packages():
        from ib_bench.report import figures  # imports Altair

        drawn = figures.make_figures(study, sharing)
        files |= {f"figures/{figure.name}.svg": figures.to_svg(figure) for figure in drawn}
        sheets = [nstar, shared, *([paper] if paper.rows else []), *tables]
        files["index.html"] = make_page(study, title, claims, sheets, drawn, figures.library())
    paths = [epath.Path(directory) / name for name in files]
    for path, text in zip(paths, files.values(), strict=True):
        write_whole(path, text)
    return paths
