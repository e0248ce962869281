"""What `yeoron sources check` shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Column, Table
from rich.text import Text

from embedding.crawl.reasons import REASONS

if TYPE_CHECKING:
    from embedding.platform.checking import SourceCheck


def check_table(found: Sequence[SourceCheck]) -> Table:
    """A row for each source: robots, listing, first text, or what is wrong."""
    # A sentence that loses half of an address helps nobody.
    first = Column("first text", overflow="fold")
    table = Table("source", "robots.txt", "lists", first, "masked", show_lines=True)
    for each in found:
        table.add_row(
            Text(f"{each.name}\n{each.kind}", style="" if each.ok else "red"),
            Text(_robots(each)),
            f"{each.listed:,}",
            _first(each),
            Text(_masked(each) or "–"),
        )
    return table


def _masked(each: SourceCheck) -> str:
    return ", ".join(f"{n} {kind}" for kind, n in sorted(each.masked.items()))


def _robots(each: SourceCheck) -> str:
    if not each.robots:
        return "–"
    delay = f"\n{each.crawl_delay:g} s apart" if each.crawl_delay else ""
    return f"{each.robots}{delay}"


def _first(each: SourceCheck) -> Text:
    if each.fault:
        return Text(f"{each.fault}: {each.sentence}", style="red")
    when = each.published_at or "no time"
    why = "".join(f"\n{reason}" for reason in each.reasons)
    return Text(f"{each.title or 'no title'}\n{when}, {each.characters:,} characters{why}")


def page_table(each: SourceCheck) -> Table:
    """What would be read of one page."""
    date = f"{each.published_at} ({each.dated_by})" if each.published_at else "unknown"
    rows = {
        "address": each.address or each.url,
        "key": each.key,
        "source": each.name,
        "robots.txt": _robots(each),
        "title": each.title,
        "date": date,
        "author": each.author or "",
        "length": f"{each.characters:,} characters",
        "language": each.language,
        "masked": _masked(each),
        "reasons": "\n".join(f"{name}: {REASONS.get(name, '')}" for name in each.reasons),
    }
    table = Table(box=SIMPLE_HEAD, show_header=False)
    for name, value in rows.items():
        table.add_row(name, Text(value or "–", overflow="fold"))
    return table
