"""What a person should know though nothing failed, read off the server's status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def notes(status: Mapping[str, Any], *, simulated: bool = False) -> list[str]:
    """One sentence for each alarm, source with errors, full queue, node or server with trouble.

    simulated  the sources are those of the simulated web, which plants faults
    """
    planted = " (the simulated web plants faults)" if simulated else ""
    found = [f"server: {reason}" for reason in status.get("ailing") or ()]
    for source, alarm in sorted((status.get("alarms") or {}).items()):
        found.append(f"alarm, {source} ({alarm['event']}): {alarm['sentence']}.")
    for name, node in sorted((status.get("nodes") or {}).items()):
        report = node.get("report") or {}
        if node.get("state") == "gone":
            found.append(f"{name}: not heard of for {node.get('last_seen_s') or 0:.0f} s.")
        if report.get("last_error"):
            found.append(f"{name}: {report['last_error']}")
        if report.get("full_waits"):
            found.append(
                f"{name}: the queue was full ({report.get('queue_capacity', 0):,} tokens) and the "
                f"crawler waited {report['full_waits']} times; learning is slower than reading: "
                "add nodes or lower node.replay_ratio."
            )
        given_up = (report.get("text") or {}).get("given_up")
        if given_up:
            found.append(
                f"{name}: {given_up} documents ended their text process or took longer than "
                "node.text_timeout, and were passed on without a word; its log names them."
            )
        for source, row in sorted((report.get("sources") or {}).items()):
            errors = {
                reason: count
                for reason, count in (row.get("errors") or {}).items()
                if reason not in {"duplicate", "near_duplicate"}
            }
            if errors:
                counts = ", ".join(f"{count} {reason}" for reason, count in sorted(errors.items()))
                last = row.get("last_error") or "unknown"
                found.append(f"{source}{planted}: {counts}. Last: {last}")
    return found
