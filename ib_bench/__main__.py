"""ib_bench COMMAND --flags, the same as python -m ib_bench COMMAND --flags."""

import contextlib
import importlib
import os
import re
import sys
import threading

from absl import flags

COMMANDS = {
    "check": "ib_bench.cli.check",
    "leaderboard": "ib_bench.cli.leaderboard",
    "list": "ib_bench.cli.list",
    "report": "ib_bench.cli.report",
    "run": "ib_bench.cli.run",
    "status": "ib_bench.cli.status",
    "submit": "ib_bench.cli.submit",
}
USAGE = """usage: ib_bench COMMAND --flags

  ib_bench run --config=FILE --workdir=DIR    answer every cell of a study, or go on with it
  ib_bench status --workdir=DIR               how far it is, while machines are working
  ib_bench report --workdir=DIR               print the N* table, write tables, figures, a page
  ib_bench list                               tasks, models, formats, policies, configs
  ib_bench check --config.model.name=my_file:make_model
                                              does a model of your own keep the contract?
  ib_bench submit pack --workdir=DIR --name=TITLE
  ib_bench submit check FOLDER                pack results for the leaderboard; check a submission
  ib_bench leaderboard                        the board, from all submissions that hold up

A key of the config is set by --config.KEY=VALUE, for example --config.model.hidden=32.
"""

EX_USAGE = 2
EX_IOERR = 74  # sysexits.h: input or output failed


def start() -> None:
    """The command line: runs a command and ends the process with its exit code.

    By then all is written. Threads that still wait for something, as orbax's do for minutes where
    a checkpoint could not be written, are not waited for.
    """
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
    others = set(threading.enumerate()) - {threading.main_thread()}
    if any(not thread.daemon for thread in others):
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def main(argv: list[str] | None = None) -> None:
    """Runs a command; bad input ends in one line and exit code 2, a failing disk in 74."""
    argv = list(sys.argv if argv is None else argv)
    if len(argv) < 2 or argv[1] in ("-h", "--help", "help"):
        print(USAGE, end="")
        sys.exit(0 if len(argv) > 1 else EX_USAGE)
    command = argv[1]
    try:
        from ib_bench.lookup import lookup

        module = importlib.import_module(lookup(COMMANDS, command, "command"))
        sys.exit(module.main(_parse_flags(command, argv)))
    except (ValueError, flags.Error) as error:
        reason = " ".join(str(error).split())
        print(f"ib_bench {command}: {reason}", file=sys.stderr)
        sys.exit(EX_USAGE)
    except BrokenPipeError:
        sys.exit(0)
    except OSError as error:  # a full disk, a file that may not be read: nothing stored is lost
        print(f"ib_bench {command}: {error}; the same command goes on from here", file=sys.stderr)
        sys.exit(EX_IOERR)


def _parse_flags(command: str, argv: list[str]) -> list[str]:
    """Parses absl flags; a config may be named by its preset."""
    from ib_bench.cli.presets import find_config
    from ib_bench.cli.study import is_own_key
    from ib_bench.configs import base

    arguments = []
    words = iter(argv[2:])
    if command == "check" and not any(re.match("--?config(=|$)", word) for word in argv[2:]):
        arguments = [f"--config={base.__file__}"]
    for word in words:
        name, equals, value = word.lstrip("-").partition("=")
        if name == "config" and word.startswith("-"):
            value = value if equals else next(words, "")
            word = f"--config={find_config(value)}"
        elif is_own_key(name) and equals:
            word = f"--own_key={name.removeprefix('config.')}={value}"
        arguments.append(word)
    sys.argv[:] = [argv[0], *arguments]  # config_flags looks for its own in here
    try:
        return flags.FLAGS([f"ib_bench {command}", *arguments])
    except (AttributeError, KeyError) as error:
        # So ml_collections calls an unknown key of the config, one of them inside the other.
        reason = error.args[0]
        reason = reason.args[0] if isinstance(reason, KeyError) else reason
        raise ValueError(f"config: unknown key {reason}") from None
    except TypeError as error:
        raise ValueError(f"config: {error}") from None


if __name__ == "__main__":
    start()
