"""Imports run one way."""

import ast
import pathlib

import pytest

import ib_bench

ROOT = pathlib.Path(ib_bench.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# Folder -> what it may import of ib_bench, beside itself and top-level files of no layer.
MAY_IMPORT = {
    "tasks": set(),
    "data": {"tasks"},
    "models": set(),
    "training": {"data", "models", "specs"},
    "results": set(),
    "search": {"data", "models", "results", "specs", "training"},
    "report": {"results"},
    "executors": {"results", "search", "specs"},
}


def imports_of(path):
    """Yields every imported dotted name, wherever in the file it is imported."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_a_folder_imports_only_what_is_below_it(folder):
    layers = {*MAY_IMPORT, "cli", "specs"}
    for path in (ROOT / folder).glob("*.py"):
        for name in imports_of(path):
            parts = name.split(".")
            if parts[0] == "ib_bench" and len(parts) > 1 and parts[1] in layers:
                assert parts[1] in MAY_IMPORT[folder] | {folder}, f"{path.name} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_models_know_flax_and_reports_know_no_jax(path):
    folder = path.relative_to(ROOT).parts[0]
    roots = {name.split(".")[0] for name in imports_of(path)}
    assert "flax" not in roots or folder == "models"
    assert "jax" not in roots or folder not in ("results", "report", "tasks")


def test_only_one_file_maps_over_devices():
    assert [path.name for path in FILES if "jax.pmap" in path.read_text()] == ["devices.py"]


def test_the_readme_names_all_that_can_be_named():
    from ib_bench import data
    from ib_bench.models import MODELS
    from ib_bench.search.policy import POLICIES
    from ib_bench.tasks import TASKS

    readme = (ROOT.parent / "README.md").read_text()
    for name in (*TASKS, *MODELS, *data.FORMATS, *data.DISTRIBUTIONS, *POLICIES):
        assert f"`{name}`" in readme, name
