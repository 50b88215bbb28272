"""Where the time of a chunk goes: the profiler's trace, read back into a few shares."""

import glob
import gzip
import json
import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import jax

# Scopes that `run.py` names, as they stand in the metadata of the compiled program.
_SCOPES = {"data": "data making", "evaluation": "evaluation", "optimizer": "optimizer"}
KINDS = ("matrix products", "element-wise", *_SCOPES.values(), "host")

_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?([\w.-]+) = (?:.*?op_name=\"([^\"]*)\")?")
_PRODUCT = re.compile(r"dot|convolution|gemm|cublas|ynn_fusion")


class Span(NamedTuple):
    """One event of a trace on one thread, in microseconds."""

    thread: Any
    start: float
    duration: float
    name: str  # of the instruction


def profiled(work: Callable[[], Any], program_text: str, folder: str) -> tuple[Any, dict]:
    """Does `work` under the profiler, and writes trace and breakdown to `folder`.

    Args:
      work: runs a compiled program once, to its end.
      program_text: the compiled program, as XLA prints it.
      folder: where trace and `breakdown.json` go; other tools read the trace too.

    Returns:
      What `work` returns, and the share of each of `KINDS` in the time.
    """
    os.makedirs(folder, exist_ok=True)
    with jax.profiler.trace(folder):
        started = time.perf_counter()
        result = work()
        seconds = time.perf_counter() - started
    newest = max(glob.glob(f"{folder}/**/*.trace.json.gz", recursive=True), key=os.path.getmtime)
    with gzip.open(newest) as file:
        spans = list(_spans(json.load(file)["traceEvents"]))
    shares = break_down(spans, _scopes(program_text), 1e6 * seconds)
    with open(os.path.join(folder, "breakdown.json"), "w") as file:
        json.dump(shares, file, indent=1)
    return result, shares


def break_down(
    spans: Iterable[Span], scopes: Mapping[str, str], microseconds: float
) -> dict[str, float]:
    """Returns the share of each of `KINDS`; they sum to 1.

    Args:
      spans: events; those whose name is in `scopes` are instructions, the others are left out.
      scopes: instruction -> the path of scopes that it was written in.
      microseconds: how long all of it took. Where no device was at work, the host was.
    """
    spans = [span for span in spans if span.name in scopes]
    threads = defaultdict(list)
    for span in spans:
        threads[span.thread].append(span)
    times = dict.fromkeys(KINDS, 0.0)
    for thread in threads.values():
        for span, own in _own_times(thread):
            times[_kind(span.name, scopes[span.name])] += own
    device = sum(times.values())
    host = max(0.0, 1 - _covered(spans) / microseconds)
    shares = {kind: (1 - host) * own / device if device else 0.0 for kind, own in times.items()}
    return shares | {"host": host if device else 1.0}


def _kind(name: str, scope: str) -> str:
    for part, kind in _SCOPES.items():
        if f"/{part}/" in scope:
            return kind
    return "matrix products" if _PRODUCT.search(name) else "element-wise"


def _own_times(thread: list[Span]) -> Iterable[tuple[Span, float]]:
    """Each event's time without that of the events inside it: a loop is not counted twice."""
    inside: list[list] = []  # open events: [span, time of those inside]
    for span in sorted(thread, key=lambda span: (span.start, -span.duration)):
        while inside and inside[-1][0].start + inside[-1][0].duration <= span.start:
            done, covered = inside.pop()
            yield done, max(0.0, done.duration - covered)
        if inside:
            inside[-1][1] += span.duration
        inside.append([span, 0.0])
    for done, covered in inside:
        yield done, max(0.0, done.duration - covered)


def _covered(spans: list[Span]) -> float:
    """Time in which any thread was inside any event."""
    total, end = 0.0, float("-inf")
    for span in sorted(spans, key=lambda span: span.start):
        stop = span.start + span.duration
        total += max(0.0, stop - max(end, span.start))
        end = max(end, stop)
    return total


def _spans(events: Iterable[dict]) -> Iterable[Span]:
    for event in events:
        if event.get("ph") == "X" and "dur" in event:
            name = event.get("args", {}).get("hlo_op", event["name"])
            yield Span((event["pid"], event["tid"]), event["ts"], event["dur"], name)


def _scopes(program_text: str) -> dict[str, str]:
    matches = map(_INSTRUCTION.match, program_text.splitlines())
    return {match[1]: match[2] or "" for match in matches if match}
