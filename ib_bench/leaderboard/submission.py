"""A submission: a folder with a description and all records, packed by us and read as a stranger's.

<name>/submission.json   who, what, which track, and a hash of the records
<name>/records.jsonl     every probe and every cell, a record a line
<name>/model/*.py        the maker's file, where the model is the submitter's own; never executed
                         unless the reader asks for a rerun
"""

import dataclasses
import hashlib
import json
import pathlib
import sys
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ib_bench.files import write_whole
from ib_bench.leaderboard import untrusted
from ib_bench.leaderboard.tracks import TRACKS, Track, question_of
from ib_bench.leaderboard.untrusted import RefusedError
from ib_bench.own import is_own, load
from ib_bench.report.study import Study, make_study
from ib_bench.results import CellRecord, ProbeRecord, Store
from ib_bench.results.record import from_json

FORMAT = 1
_FILES = {
    r"submission\.json": 2**16,
    r"records\.jsonl": 2**26,
    r"model/[A-Za-z_][A-Za-z0-9_]{0,60}\.py": 2**18,
}
_MOST_LINE = 2**18
_MOST_RECORDS = 20_000


@dataclasses.dataclass(frozen=True)
class Description:
    """What a submitter says; text, never markup."""

    format: int  # of this layout: FORMAT
    name: str  # of the folder
    title: str  # as the board shows it
    authors: str
    url: str
    description: str
    track: str
    records: str  # SHA-256 of records.jsonl, hexadecimal


class Submission(NamedTuple):
    description: Description
    cells: tuple[CellRecord, ...]
    probes: Mapping[str, tuple[ProbeRecord, ...]]  # by cell key, by N
    sources: Mapping[str, str]  # by file name

    @property
    def study(self) -> Study:
        """The records as `ib_bench report` takes them."""
        return make_study(self.cells, self.probes)


# --- packing ------------------------------------------------------------------------------------


def pack(
    store: Store,
    track: Track,
    out: pathlib.Path,
    title: str,
    *,
    authors: str = "",
    url: str = "",
    description: str = "",
) -> tuple[pathlib.Path, list[str]]:
    """Writes a submission from a workdir.

    Args:
      store: of the workdir.
      track: its cells are packed; others of the workdir are left out.
      out: where the submission's folder is made.
      title: as the board shows it; the folder is named after it.
      authors, url, description: text for the board.

    Returns:
      The folder, and the labels of the track's cells that are missing.

    Raises:
      ValueError: the workdir has none of the track's cells, or those of several models; a file of
        the name is there that is no submission.
    """
    cells = {}
    for record in store.cells():
        if (question := question_of(record.cell)) in track.cells:
            if record.search != track.search.as_dict():
                raise ValueError(
                    f"workdir: {record.cell_key} was searched with other settings than the "
                    f"track's; run --config=leaderboard:{track.name} again"
                )
            cells.setdefault(json.dumps(record.cell["model"]), {})[question] = record
    if not cells:
        raise ValueError(
            f"workdir: {str(store.workdir)!r} holds no cell of the track {track.name!r}; run "
            f"`ib_bench run --config=leaderboard:{track.name} --workdir={store.workdir}` first"
        )
    if len(cells) > 1:
        raise ValueError(
            f"workdir: {str(store.workdir)!r} holds {len(cells)} models: {', '.join(cells)}; "
            "give each a workdir of its own"
        )
    ((model, answered),) = cells.items()
    lines = []
    for question in track.cells:
        if record := answered.get(question):
            tried = [store.probe(record.cell_key, probe.size) for probe in record.probes]
            lines += [_line(probe) for probe in tried if probe]
            lines.append(_line(record))
    text = "\n".join([*lines, ""])
    folder = out / _folder_name(title)
    said = Description(
        format=FORMAT,
        name=folder.name,
        title=title,
        authors=authors,
        url=url,
        description=description,
        track=track.name,
        records=hashlib.sha256(text.encode()).hexdigest(),
    )
    if folder.exists() and not (folder / "submission.json").is_file():
        raise ValueError(f"name: {folder} is there and is no submission; choose another --name")
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "records.jsonl", text)
    write_whole(folder / "submission.json", json.dumps(dataclasses.asdict(said), indent=1) + "\n")
    _copy_source(json.loads(model)["name"], folder)
    missing = [cell.label for key, cell in track.cells.items() if key not in answered]
    return folder, missing


def _line(record: CellRecord | ProbeRecord) -> str:
    kind = "cell" if isinstance(record, CellRecord) else "probe"
    content = {"kind": kind, "record": dataclasses.asdict(record)}
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


def _folder_name(title: str) -> str:
    name = "".join(letter if letter.isalnum() else "-" for letter in title.lower())
    name = "-".join(part for part in name.encode("ascii", "ignore").decode().split("-") if part)
    if not name:
        raise ValueError(f"name: {title!r} has no letter or digit; choose another --name")
    return name[:64]


def _copy_source(name: str, folder: pathlib.Path) -> None:
    """Puts the maker's file beside the records, where it is a user's and can be found."""
    for path in (folder / "model").glob("*.py"):  # of an earlier time
        path.unlink()
    if not is_own(name):
        return
    try:
        module = sys.modules[load(name, "model.name").__module__]
        path = pathlib.Path(module.__file__)
    except (ValueError, KeyError, TypeError, AttributeError):
        return
    (folder / "model").mkdir(exist_ok=True)
    (folder / "model" / f"{path.stem}.py").write_bytes(path.read_bytes())


# --- reading ------------------------------------------------------------------------------------


def read(folder: pathlib.Path) -> Submission:
    """Reads a stranger's submission. Its records are of our schema then; true they are not yet.

    Raises:
      RefusedError: anything in it is not what a submission holds.
    """
    if not folder.is_dir() or folder.is_symlink():
        raise RefusedError(f"{untrusted.printable(folder.name)}: no folder")
    files = untrusted.list_files(folder, _FILES)
    for name in ("submission.json", "records.jsonl"):
        if name not in files:
            raise RefusedError(f"{name}: missing")
    text = untrusted.read_text(folder / "submission.json", 2**16)
    content = untrusted.parse(text, "submission.json")
    said = untrusted.build(Description, content, "submission.json")
    if said.format != FORMAT:
        raise RefusedError(f"submission.json: format {said.format}; this reads {FORMAT}")
    untrusted.check_name(said.name, "submission.json: name")
    if said.name != folder.name:
        raise RefusedError(
            f"submission.json: name {said.name!r} is not its folder's, "
            f"{untrusted.printable(folder.name)!r}"
        )
    if said.track not in TRACKS:
        raise RefusedError(f"submission.json: track {said.track!r}; there are {', '.join(TRACKS)}")
    if said.url and not said.url.startswith(("https://", "http://")):
        raise RefusedError("submission.json: url: write https://...")
    cells, probes = _read_records(folder / "records.jsonl", said.records)
    sources = {
        name.partition("/")[2]: untrusted.read_text(folder / name, 2**18)
        for name in sorted(files)
        if name.startswith("model/")
    }
    return Submission(said, cells, probes, sources)


def _read_records(path: pathlib.Path, expected: str) -> tuple[tuple, dict[str, tuple]]:
    cells: dict[str, CellRecord] = {}
    probes: dict[str, dict[int, ProbeRecord]] = {}
    digest = hashlib.sha256()
    for number, line in enumerate(untrusted.read_lines(path, _MOST_LINE), 1):
        where = f"{path.name}, line {number}"
        if number > _MOST_RECORDS:
            raise RefusedError(f"{path.name}: more than {_MOST_RECORDS:,} records")
        digest.update(line.encode())
        record = _read_record(line, where)
        _check_all_texts(dataclasses.asdict(record), where)
        if isinstance(record, CellRecord):
            if record.cell_key in cells:
                raise RefusedError(f"{where}: a second answer to {record.cell_key}")
            cells[record.cell_key] = record
        else:
            sizes = probes.setdefault(record.cell_key, {})
            if record.size in sizes:
                raise RefusedError(f"{where}: a second record of N={record.size}")
            sizes[record.size] = record
    if digest.hexdigest() != expected:
        raise RefusedError(
            f"{path.name}: its hash is not the one in submission.json; records were changed after "
            "packing, pack again"
        )
    if not cells:
        raise RefusedError(f"{path.name}: no cell")
    ordered = {key: tuple(some[size] for size in sorted(some)) for key, some in probes.items()}
    return tuple(cells.values()), ordered


def _read_record(line: str, where: str) -> CellRecord | ProbeRecord:
    content = untrusted.parse(line, where)
    if not isinstance(content, dict) or content.keys() != {"kind", "record"}:
        raise RefusedError(f'{where}: no {{"kind": ..., "record": ...}}')
    kinds = {"cell": CellRecord, "probe": ProbeRecord}
    if not isinstance(content["kind"], str) or content["kind"] not in kinds:
        raise RefusedError(f"{where}: kind is neither cell nor probe")
    try:
        return from_json(kinds[content["kind"]], json.dumps(content["record"]))
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"{where}: {untrusted.printable(str(error), 250)}") from None


def _check_all_texts(value: Any, where: str) -> None:
    """Checks every text of a record, keys too; a record is at most six levels deep."""
    parts: Iterable = ()
    if isinstance(value, dict):
        parts = [*value.keys(), *value.values()]
    elif isinstance(value, list):
        parts = value
    else:
        untrusted.check_texts(value, where)
    for part in parts:
        _check_all_texts(part, where)
