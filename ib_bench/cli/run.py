"""ib_bench run: answers every cell of a study, or goes on where an earlier start left off."""

import dataclasses
import re
import signal

from absl import flags
from ml_collections import config_flags

CONFIG = config_flags.DEFINE_config_file(
    "config", None, "a file of configs/, or the name of one: quick", lock_config=True
)
WORKDIR = flags.DEFINE_string("workdir", None, "where results are written; made where missing")
ONLY = flags.DEFINE_string("only", None, "only cells whose label matches this regular expression")
PROFILE = flags.DEFINE_string(
    "profile_dir", "", "where the second chunk of each program is profiled to, with a breakdown"
)

EX_TEMPFAIL = 75  # sysexits.h: try again later


def main(argv: list[str]) -> int:
    """Runs a study; returns 0, or 75 where it was asked to stop and should be started again."""
    if len(argv) > 1:
        raise ValueError(f"run: unexpected argument {argv[1]!r}; options are written --name=value")
    if CONFIG.value is None:
        raise ValueError("config: missing; name a file, for example --config=configs/quick.py")
    if not WORKDIR.value:
        raise ValueError("workdir: missing; name a folder, for example --workdir=results/quick")

    # Before anything asks for a device.
    from ib_bench.training.devices import keep_compiled, use_every_core

    requested = CONFIG.value.lanes.devices
    use_every_core(requested if type(requested) is int and requested > 0 else 0)

    from rich.console import Console

    from ib_bench.cli.progress import Reporter
    from ib_bench.configure import make_study
    from ib_bench.executors.local import is_answered, run_study
    from ib_bench.report import nstar_table, print_table, write_report
    from ib_bench.results import Store
    from ib_bench.search.scheduler import Preempted

    overrides = config_flags.get_override_values(flags.FLAGS["config"])
    study = make_study(CONFIG.value, overrides)
    if ONLY.value:
        study = _restricted(study, ONLY.value)
    # What is profiled is compiled anew: a kept program holds the scopes of older code.
    keep_compiled("" if PROFILE.value else study.lanes.compile_cache)
    store = Store(WORKDIR.value)
    store.prepare()
    done = sum(is_answered(cell, study, store) for cell in study.cells)
    stop = _stop_on_signals()
    with Reporter(len(study.cells), done, study.out.log_seconds) as reporter:
        try:
            run_study(study, store, reporter.observe, stop, PROFILE.value)
            code = 0
        except Preempted:
            code = EX_TEMPFAIL
    console = Console()
    records = [record for cell in study.cells if (record := store.cell(cell.key))]
    if records:
        print_table(nstar_table(records), console)
        for path in write_report(store, store.workdir):
            console.print(f"wrote {path}", markup=False, highlight=False, soft_wrap=True)
        # Figures and the page take seconds, and may be made while a study runs.
        report = f"ib_bench report --workdir={WORKDIR.value}"
        console.print(f"all of it as a page: {report}", markup=False, highlight=False)
    console.print(reporter.summary(), markup=False, highlight=False, soft_wrap=True)
    if code:
        console.print("stopped when asked to; the same command goes on from here", soft_wrap=True)
    return code


def _restricted(study, pattern: str):
    try:
        cells = tuple(cell for cell in study.cells if re.search(pattern, cell.label))
    except re.error as error:
        raise ValueError(f"only: {pattern!r} is no regular expression: {error}") from None
    if not cells:
        raise ValueError(
            f"only: {pattern!r} matches none of {len(study.cells)} cells; "
            f"labels look like {study.cells[0].label!r}"
        )
    return dataclasses.replace(study, cells=cells)


def _stop_on_signals():
    """Returns should_stop(): True once SIGTERM or SIGINT came. A second SIGINT stops at once."""
    received = []

    def remember(number, frame):
        received.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, remember)
    return lambda: bool(received)
