"""ib_bench report: one command for everything that is read."""

import subprocess
import sys

from made_records import make_cell

from ib_bench.report import missing_packages
from ib_bench.results import Store

WITHOUT = """
import sys
for name in ("altair", "vl_convert"):
    sys.modules[name] = None  # as if it were not installed
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: (
    None if name in ("altair", "vl_convert") else found(name, *rest)
)
from ib_bench.__main__ import main
main()
"""


def report(*arguments, code="from ib_bench.__main__ import main; main()"):
    command = [sys.executable, "-c", code, "report", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_the_report_is_tables_observations_and_where_it_can_be_figures_and_a_page(tmp_path):
    Store(tmp_path / "study").write(make_cell())
    done = report(f"--workdir={tmp_path / 'study'}", f"--out={tmp_path / 'out'}")
    assert done.returncode == 0, done.stderr
    names = {str(path.relative_to(tmp_path / "out")) for path in tmp_path.glob("out/**/*.*")}
    assert names >= {
        f"{name}.{end}" for name in ("nstar", "claims", "sharing") for end in ("md", "csv")
    }
    if not missing_packages():
        assert names >= {"index.html", "figures/nstar_m_5.svg"}
        assert "<h1>study</h1>" in (tmp_path / "out" / "index.html").read_text()
        assert "not written" not in done.stdout
    assert not list(tmp_path.glob("study/*.md"))


def test_without_the_extra_one_line_says_what_is_missing_and_how_to_get_it(tmp_path):
    Store(tmp_path).write(make_cell())
    done = report(f"--workdir={tmp_path}", code=WITHOUT)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("not written")]
    assert "altair and vl-convert-python" in line and "pip install -e '.[report]'" in line
    assert (tmp_path / "claims.md").exists() and not (tmp_path / "index.html").exists()


def test_several_workdirs_are_one_report(tmp_path):
    Store(tmp_path / "a").write(make_cell(14, 13))
    Store(tmp_path / "b").write(make_cell(20, 19, fmt="acot"))
    both = [f"--workdir={tmp_path / name}" for name in "ab"]
    done = report(*both)
    assert done.returncode == 2 and "out: not set; say with --out=DIR" in done.stderr
    done = report(*both, f"--out={tmp_path / 'out'}")
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "out" / "nstar.csv").read_text().splitlines()) == 3


def test_an_empty_workdir_is_an_error_with_a_fix(tmp_path):
    done = report(f"--workdir={tmp_path}")
    assert done.returncode == 2 and "holds no finished cells; run `ib_bench run" in done.stderr
    assert report().returncode == 2
