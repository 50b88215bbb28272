"""Puts the tables of benchmarks/measured/*.json into benchmarks/README.md and launch/README.md.

    .venv/bin/python -m benchmarks.readme

Each table stands between <!-- NAME --> and <!-- /NAME -->; the text around them is written by hand.
"""

import json
import pathlib
import re

from benchmarks.layouts import LAYOUTS
from benchmarks.output import to_markdown

FOLDER = pathlib.Path(__file__).parent
READMES = (FOLDER / "README.md", FOLDER.parent / "launch" / "README.md")


def fill_in(text: str, folder: pathlib.Path) -> str:
    """Returns `text` with every table as it was measured; one never measured says so."""

    def table_of(match: re.Match) -> str:
        name = match[1]
        path = folder / f"{name}.json"
        table = "Not measured yet.\n"
        if path.exists():
            table = to_markdown(LAYOUTS[name], **json.loads(path.read_text()))
        return f"<!-- {name} -->\n\n{table}\n<!-- /{name} -->"

    return re.sub(r"<!-- (\w+) -->.*?<!-- /\1 -->", table_of, text, flags=re.DOTALL)


def main() -> None:
    for readme in READMES:
        readme.write_text(fill_in(readme.read_text(), FOLDER / "measured"))


if __name__ == "__main__":
    main()
