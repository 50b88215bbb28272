"""ib_bench list: what can be named in a config."""

import inspect

from rich.console import Console

from ib_bench.cli.presets import available_configs


def main(argv: list[str]) -> int:
    """Prints tasks, models, formats, length distributions, policies and configs."""
    del argv
    from ib_bench import data
    from ib_bench.models import MODELS
    from ib_bench.search.policy import POLICIES
    from ib_bench.tasks import TASKS

    console = Console(highlight=False, markup=False)
    sections = {
        "tasks (task.name)": TASKS,
        "models (model.name)": MODELS,
        "formats (data.format)": data.FORMATS,
        "length distributions (data.length_distribution)": data.DISTRIBUTIONS,
        "search policies (search.policy)": POLICIES,
    }
    for title, registry in sections.items():
        console.print(title, style="bold")
        for name, entry in registry.items():
            console.print(f"  {name:<24} {inspect.getdoc(entry).splitlines()[0]}", soft_wrap=True)
    console.print("configs (--config)", style="bold")
    for name, path in available_configs().items():
        with open(path) as file:
            first_line = file.readline().strip().strip('"')
        console.print(f"  {name:<24} {first_line}", soft_wrap=True)
    return 0
