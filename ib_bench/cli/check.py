"""ib_bench check: does a model keep what the benchmark relies on? Told point by point."""

import time

EX_BROKEN = 1


def main(argv: list[str]) -> int:
    """Checks every model of a study, once for each of its programs.

    Returns:
      0, or 1 where a point is not kept.
    """
    if len(argv) > 1:
        raise ValueError(
            f"check: unexpected argument {argv[1]!r}; options are written --name=value"
        )
    from rich.console import Console

    from ib_bench.cli.study import prepare_devices, read_study
    from ib_bench.training.devices import describe_devices, require_platform

    prepare_devices(on_workers=False)
    study = read_study()
    require_platform(None)
    console = Console()

    def say(text, style=None):
        console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    say(f"on {describe_devices()}")
    tasks = {cell.task: cell.automaton for cell in study.cells}
    for task in tasks.values():
        say(f"task {task.name}: {task.num_states} states, {task.num_symbols} symbols")
    broken = []
    for program, cells in study.groups():
        say(f"\n{program.label}", style="bold")
        if settings := ", ".join(f"{key}={value}" for key, value in program.model.settings):
            say(f"  {'settings':<15} {settings}")
        for finding in _findings(program, study, cells[0]):
            mark = "✓" if finding.kept else "✗"
            say(f"{mark} {finding.point:<15} {finding.told}", None if finding.kept else "red")
            if not finding.kept:
                broken.append(f"{program.model.label}: {finding.point}: {finding.told}")
    if broken:
        say(f"\nnot kept: {'; '.join(broken)}")
        return EX_BROKEN
    say("\nall points are kept")
    return 0


def _findings(program, study, cell):
    """Yields what is found; a model that keeps its contract is trained for a moment too."""
    from ib_bench.models.check import Finding, check_model
    from ib_bench.own import told
    from ib_bench.training.run import make_program_model

    kept = True
    sizes = (program.num_inputs, program.num_outputs, program.num_positions)
    for finding in check_model(make_program_model(program), *sizes):
        kept = kept and finding.kept
        yield finding
    if kept:
        try:
            yield Finding("training", True, _speed(program, study, cell))
        except Exception as error:  # whatever a user's code may raise
            yield Finding("training", False, told(error))


def _speed(program, study, cell) -> str:
    """Trains for a chunk on full lanes and tells how fast that was."""
    from ib_bench.specs import max_size
    from ib_bench.training.lanes import Lanes
    from ib_bench.training.run import make_run_operands

    size = min(1000, max_size(cell, study.search))
    operands = make_run_operands(cell.make_data(), size, cell.grid.learning_rates[0], 0)
    lanes = Lanes(program, study.lanes, len(cell.grid.runs), operands)
    everyone = range(lanes.num_lanes)
    lanes.load({lane: operands for lane in everyone})
    lanes.advance(everyone)
    started = time.monotonic()
    lanes.advance(everyone)
    seconds = time.monotonic() - started
    steps = program.eval_every * lanes.num_lanes
    budget = cell.optim.steps * len(cell.grid.runs) * seconds / steps
    return (
        f"{steps / seconds:,.0f} steps/s of {program.batch_size} sequences in {lanes.num_lanes} "
        f"lanes, {lanes.compile_seconds:.0f} s to compile; a size that fails is "
        f"{len(cell.grid.runs)} runs of {cell.optim.steps:,} steps: {budget:,.0f} s"
    )
