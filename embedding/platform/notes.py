"""What a person should know though nothing failed, read off the server's status."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from embedding.crawl.origins import doubtful

LATEST_NAMED = 3
"""Of so many windows, the latest ones, it is said what they lack."""


def texts_left_out(text: Mapping[str, Any]) -> str:
    """What a report of text preparation says of those that it left out; "" for none."""
    if not text.get("given_up"):
        return ""
    left_out = text.get("left_out") or {}
    named = "; ".join(f"{key} ({why})" for key, why in left_out.items())
    n = text["given_up"]
    latest = f", of which the last {len(left_out)} are named" if len(left_out) < n else ""
    subject = "1 text" if n == 1 else f"{n:,} texts"
    return (
        f"{subject} could not be read and {'was' if n == 1 else 'were'} left out{latest}: {named}."
    )


def notes(status: Mapping[str, Any], *, simulated: bool = False) -> list[str]:
    """One sentence for each alarm, source with errors, full queue, node or server with trouble.

    simulated  the sources are those of the simulated web, which plants faults
    """
    planted = " (the simulated web plants faults)" if simulated else ""
    lines = [f"server: {reason}" for reason in status.get("ailing") or ()]
    lines += lacking_windows(status.get("snapshots") or ())
    lines += (status.get("waits") or {}).values()
    for label, window in (status.get("windows") or {}).items():
        if late := window.get("late_documents"):
            from embedding.snapshots.format import Missing, sentence  # numpy: only where asked

            lacks = Missing(part="documents", reason="late_documents", documents=late)
            lines.append(sentence(lacks, label))
    for source, alarm in sorted((status.get("alarms") or {}).items()):
        lines.append(f"alarm, {source} ({alarm['event']}): {alarm['sentence']}.")
    for name, node in sorted((status.get("nodes") or {}).items()):
        report = node.get("report") or {}
        if node.get("state") == "gone":
            lines.append(f"{name}: not heard of for {node.get('last_seen_s') or 0:.0f} s.")
        if report.get("last_error"):
            lines.append(f"{name}: {report['last_error']}")
        if report.get("full_waits"):
            lines.append(
                f"{name}: the queue was full ({report.get('queue_capacity', 0):,} tokens) and the "
                f"crawler waited {report['full_waits']} times; learning is slower than reading: "
                "add nodes or lower node.replay_ratio."
            )
        if left_out := texts_left_out(report.get("text") or {}):
            lines.append(f"{name}: {left_out}")
        for source, row in sorted((report.get("sources") or {}).items()):
            if counts := counted((row.get("errors") or {}) | doubtful(row.get("dated") or {})):
                last = f" Last: {row['last_error']}" if row.get("last_error") else ""
                lines.append(f"{source}{planted}: {counts}.{last}")
    return lines


def counted(faults: Mapping[str, int]) -> str:
    """A source's counts by reason in words; copies are no trouble."""
    named = sorted(faults.items())
    return ", ".join(f"{n:,} {why}" for why, n in named if not why.endswith("duplicate"))


def lacking_windows(refs: Iterable[Mapping[str, Any]]) -> list[str]:
    """What the latest windows lack, a sentence each, and how many before them lack something.

    refs  `SnapshotRef.to_dict()` by window start; the last one of a window counts
    """
    windows = {(ref["window_start"], ref["window_end"]): ref.get("lacks", ()) for ref in refs}
    lacking = [lacks for lacks in windows.values() if lacks]
    lines = [lack for lacks in lacking[-LATEST_NAMED:] for lack in lacks]
    if more := len(lacking[:-LATEST_NAMED]):
        lines.append(f"{more:,} more windows lack something; `yeoron snapshot list` names them.")
    return lines
