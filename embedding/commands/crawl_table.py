"""What `yeoron crawl` shows: a row for each source, renewed while it runs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from embedding.commands.common import errors, print_line
from embedding.crawl.origins import doubtful
from embedding.platform.notes import texts_left_out

_FAULTS_SHOWN = 4
LINE_SECONDS = 10.0
"""Between two lines of what was read so far, where there is no terminal."""


def crawl_table(report: dict[str, Any]) -> Group:
    """The figures by source and in all; faults by reason, the most frequent first."""
    table = Table("source", box=SIMPLE_HEAD)
    for name in ("docs", "tokens", "pages/min", "lag", "waiting", "changes/h", "next"):
        table.add_column(name, justify="right")
    # Below the table, for a terminal of 80 columns has no room for them in it.
    troubles = []
    for name, row in sorted(report["sources"].items()):
        table.add_row(
            name,
            f"{row['documents']:,}",
            f"{row['tokens']:,}",
            f"{row['pages_per_minute']:,.0f}",
            _seconds(row["lag_p50_s"]),
            f"{row['pending']:,}",
            *_poll(row.get("poll")),
        )
        if row["errors"] or row.get("alarm") or doubtful(row["dated"]):
            troubles.append(Text(f"{name}: ") + _faults(row))
    if left_out := texts_left_out(report["text"]):
        troubles.append(Text(left_out, style="yellow"))
    return Group(table, *troubles, Text(_summary(report)))


def _summary(report: dict[str, Any]) -> str:
    masked = report["text"].get("masked", {})
    hidden = ", ".join(f"{n:,} {kind}" for kind, n in sorted(masked.items())) or "nothing"
    return (
        f"{report['documents']:,} documents, {report['tokens']:,} tokens in "
        f"{report['seconds']:.0f} s ({report['documents_per_minute']:,.0f} documents/min, "
        f"{report['tokens_per_second']:,.0f} tokens/s); masked: {hidden}"
    )


def _faults(row: dict[str, Any]) -> Text:
    """Counts by reason, and what the source's yield says of it."""
    counted = Counter(row["errors"] | doubtful(row["dated"])).most_common()
    parts = [f"{n:,} {reason}" for reason, n in counted[:_FAULTS_SHOWN]]
    if len(counted) > _FAULTS_SHOWN:
        parts.append(f"{len(counted) - _FAULTS_SHOWN} more kinds")
    shown = Text(", ".join(parts), style="yellow" if parts else "")
    alarm = row.get("alarm")
    if alarm:
        shown = Text(f"{alarm['event']} ({alarm['sentence']}) ", style="bold red") + shown
    return shown


def _poll(poll: dict[str, Any] | None) -> tuple[str, str]:
    """Estimated changes an hour, and when the next poll is due."""
    if poll is None:
        return "–", "–"
    coming = poll["next_poll_s"]
    rate = f"{poll['changes_per_hour']:,.3g}" if poll["polls"] else "–"
    return rate, "now" if coming is None else _seconds(coming)


def _seconds(value: float | None) -> str:
    if value is None:
        return "–"
    if value < 120:
        return f"{value:.1f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.0f} h"


class CrawlView:
    """The table on a terminal; elsewhere a line now and then."""

    def __init__(self) -> None:
        self._next_line = LINE_SECONDS
        # Libraries and the morpheme analyser take seconds to load.
        starting = Text("Starting …")
        self._live = Live(starting, console=errors, transient=True, refresh_per_second=4)

    def __enter__(self) -> CrawlView:
        if errors.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, report: dict[str, Any]) -> None:
        if errors.is_terminal:
            self._live.update(crawl_table(report))
        elif report["seconds"] >= self._next_line:
            self._next_line = report["seconds"] + LINE_SECONDS
            print_whole(report)


def print_whole(report: dict[str, Any]) -> None:
    """The figures of all sources, a line on standard error."""
    print_line(f"yeoron: {_summary(report)}", to=errors)
