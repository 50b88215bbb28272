"""Imports run one way."""

import ast
import pathlib
import subprocess
import sys

import pytest

import ib_bench

ROOT = pathlib.Path(ib_bench.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# Folder or file -> what it may import of ib_bench, beside itself and top-level files of no layer.
MAY_IMPORT = {
    "tasks": set(),
    "data": {"tasks"},
    "models": set(),
    "specs": {"data", "tasks"},
    "training": {"data", "models", "specs"},
    "results": set(),
    "search": {"data", "models", "results", "specs", "training"},
    "metrics": {"results"},
    "report": {"metrics", "results"},
    "executors": {"results", "search", "specs", "training"},
    "configure": {"data", "models", "search", "specs", "tasks"},
    "leaderboard": {
        *("configure", "executors", "metrics", "models", "report", "results", "search", "specs"),
        "training",
    },
}


def imports_of(path):
    """Yields every imported dotted name, wherever in the file it is imported."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("layer", MAY_IMPORT)
def test_a_layer_imports_only_what_is_below_it(layer):
    layers = {*MAY_IMPORT, "cli"}
    paths = [path for path in FILES if path.relative_to(ROOT).with_suffix("").parts[0] == layer]
    assert paths
    for path in paths:
        for name in imports_of(path):
            parts = name.split(".")
            assert parts[0], f"{path.name}: relative imports hide the layer"
            if parts[0] == "ib_bench" and len(parts) > 1 and parts[1] in layers:
                assert parts[1] in MAY_IMPORT[layer] | {layer}, f"{path.name} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_models_know_flax_and_reports_know_no_jax(path):
    folder = path.relative_to(ROOT).parts[0]
    roots = {name.split(".")[0] for name in imports_of(path)}
    assert "flax" not in roots or folder == "models"
    assert "jax" not in roots or folder not in ("results", "metrics", "report", "tasks")


def test_metrics_are_plain_numpy():
    for path in (ROOT / "metrics").glob("*.py"):
        roots = {name.split(".")[0] for name in imports_of(path)}
        assert roots <= {"ib_bench", "numpy", *sys.stdlib_module_names}, path


def modules_of(name):
    """Yields the modules of this package that importing `name` runs, itself included."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        path = ROOT.parent.joinpath(*parts[:count])
        if path.is_dir() or path.with_suffix(".py").is_file():
            yield ".".join(parts[:count])


def file_of(module):
    path = ROOT.parent.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def all_imports_of(module):
    """Returns every root that importing a module may import, over any number of modules."""
    seen, waiting, roots = set(), list(modules_of(module)), set()
    while waiting:
        current = waiting.pop()
        if current not in seen:
            seen.add(current)
            for name in imports_of(file_of(current)):
                roots.add(name.split(".")[0])
                if name.startswith("ib_bench"):
                    waiting.extend(modules_of(name))
    return roots


def test_imports_are_followed_from_module_to_module():
    assert {"jax", "flax", "optax"} <= all_imports_of("ib_bench.cli.run")
    assert "flax" in all_imports_of("ib_bench.configure")
    assert "flax" not in all_imports_of("ib_bench.specs")


@pytest.mark.parametrize("folder", ["metrics", "report", "results", "tasks"])
def test_records_reports_and_tasks_reach_no_jax_at_all(folder):
    for path in (ROOT / folder).glob("*.py"):
        module = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
        assert not all_imports_of(module.removesuffix(".__init__")) & {"jax", "flax", "optax"}


@pytest.mark.parametrize(
    "module", ["ib_bench", "ib_bench.metrics", "ib_bench.report", "ib_bench.results"]
)
def test_importing_it_loads_no_jax(module):
    code = f"import sys, {module}; print(sorted({{'jax', 'flax', 'optax'}} & sys.modules.keys()))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "[]", result.stderr


def test_every_folder_with_code_has_its_place():
    folders = {path.relative_to(ROOT).parts[0] for path in FILES if path.parent != ROOT}
    with_code = {name for name in folders if any((ROOT / name).glob("[a-z]*.py"))}
    assert with_code | {"specs", "configure"} == {*MAY_IMPORT, "cli"}


def test_only_the_commands_and_the_presets_know_the_command_line():
    for path in FILES:
        roots = {name.split(".")[0] for name in imports_of(path)}
        if "absl" in roots:
            assert path.parent.name == "cli" or path.name == "__main__.py", path
        if "ml_collections" in roots:
            assert path.parent.name == "cli" or path.name == "configure.py", path


def test_only_one_file_maps_over_devices():
    assert [path.name for path in FILES if "jax.pmap" in path.read_text()] == ["devices.py"]
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute | ast.Name | ast.alias):
                name = getattr(node, "attr", None) or getattr(node, "id", None) or node.name
                assert name != "pmap" or path.name == "devices.py", path


def test_the_readme_names_all_that_can_be_named():
    from ib_bench import data
    from ib_bench.models import MODELS
    from ib_bench.search.policy import POLICIES
    from ib_bench.tasks import TASKS

    readme = (ROOT.parent / "README.md").read_text()
    for name in (*TASKS, *MODELS, *data.FORMATS, *data.DISTRIBUTIONS, *POLICIES):
        assert f"`{name}`" in readme, name
