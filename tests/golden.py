"""Pages beside their reviewed words: `pytest --renew` writes these anew, to be read in the diff."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"

_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d.,]*(?<=\d)(e[-+]?\d+)?")


def words_of(page: str) -> str:
    """Return the words of a page line by line: numbers are #, times # s, tables their headings."""
    page = re.sub(r"<style.*?</style>|<script>.*?</script>", "", page, flags=re.DOTALL)
    page = re.sub(r'"data:image[^"]*"|alt="[^"]*"', '""', page)  # a caption is there twice
    page = re.sub(
        r'<script type="application/json">(.*?)</script>',
        lambda found: f"\n{_headings(json.loads(found[1]))}\n",
        page,
        flags=re.DOTALL,
    )
    text = html.unescape(re.sub(r"<[^>]*>", "\n", page)).replace("\u00a0", " ")
    text = re.sub(r"# (ms|min)\b", "# s", _NUMBER.sub("#", text))
    lines = (" ".join(line.split()) for line in text.splitlines())
    kept: list[str] = []
    for line in lines:
        if line and line != (kept or [""])[-1]:
            kept.append(line)
    return "\n".join(kept) + "\n"


def _headings(table: object) -> str:
    if not isinstance(table, dict):
        return ""
    return " | ".join([*table["header"], *filter(None, [table.get("note")])])


def check_golden(name: str, page: str, *, renew: bool) -> None:
    """Raise if the words of a page differ from those in its file, or write the file."""
    path = FOLDER / f"{name}.txt"
    if renew:
        path.parent.mkdir(exist_ok=True)
        path.write_text(words_of(page), encoding="utf-8")
    assert words_of(page) == path.read_text(encoding="utf-8"), "pytest --renew, then read the diff"
