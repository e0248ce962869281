"""Whether a group of sources has passed a window, read off the server's status: no I/O here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Target:
    """What is waited for: `sources` to pass `end` (Unix seconds) of the window `label`.

    A source that is silent for `idle_after_s` seconds is waited for no longer once event time has
    left the window, or once all are silent: one that is unreachable or rarely writes stops nobody.
    """

    sources: tuple[str, ...]
    label: str
    end: float
    idle_after_s: float


@dataclass(frozen=True)
class WindowProgress:
    """One look at the status; counts and names only, so it may be logged.

    done       every source has passed, or the window's snapshot is there
    snapshot   id of the window's snapshot, None while there is none
    passed, idle, waiting   names of the sources; `idle` ones are not waited for any longer
    errors     last error by source, of those that did not pass and had one
    alarms     why a source is out of its usual range, by source: `event`, `since`, `sentence`
    documents, tokens       learnt from these sources since the server started
    """

    done: bool
    snapshot: str | None = None
    passed: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    documents: int = 0
    tokens: int = 0
    behind: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    alarms: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def sentence(self) -> str:
        """One line for the task's log."""
        if self.snapshot:
            return f"The window already has snapshot {self.snapshot}."
        total = len(self.passed) + len(self.idle) + len(self.waiting)
        parts = [f"{len(self.passed)} of {total} sources have passed the window"]
        if self.idle:
            parts.append(f"silent: {', '.join(self.idle)}")
        if self.waiting:
            places = {name: f"at {when}" for name, when in self.behind.items()}
            at = (f"{name} ({places.get(name, 'no document yet')})" for name in self.waiting)
            parts.append(f"waiting for {', '.join(at)}")
        if self.alarms:
            named = (f"{name} ({alarm['event']})" for name, alarm in self.alarms.items())
            parts.append(f"alarm: {', '.join(named)}")
        return f"{'; '.join(parts)}; {self.documents:,} documents, {self.tokens:,} tokens."


def judge(
    status: Mapping[str, Any], target: Target, *, watched_s: float, now: float
) -> WindowProgress:
    """Compare the server's `/status` with `target`.

    `watched_s` is how long nodes that were ready have been watched (the silence of a source the
    server has not heard of), `now` the wall time: a window that has not ended yet in wall time is
    never given up.
    """
    sources: Mapping[str, Mapping[str, Any]] = status.get("sources") or {}
    window = (status.get("windows") or {}).get(target.label) or {}
    known = [sources[name] for name in target.sources if name in sources]
    documents = sum(int(entry.get("documents") or 0) for entry in known)
    tokens = sum(int(entry.get("tokens") or 0) for entry in known)
    if window.get("snapshot"):
        return WindowProgress(True, str(window["snapshot"]), documents=documents, tokens=tokens)
    watermark = _seconds(status.get("watermark"))
    passed: list[str] = []
    idle: list[str] = []
    waiting: list[str] = []
    may_give_up = now >= target.end and _window_over(status, target, watched_s)
    for name in target.sources:
        entry = sources.get(name) or {}
        reached = max(_seconds(entry.get("published_at")), watermark if entry else 0.0)
        if reached >= target.end:
            passed.append(name)
        elif may_give_up and _silent(entry, watched_s) >= target.idle_after_s:
            (waiting if entry.get("pending") else idle).append(name)
        else:
            waiting.append(name)
    return WindowProgress(
        done=not waiting,
        passed=tuple(passed),
        idle=tuple(idle),
        waiting=tuple(waiting),
        errors=_errors(status, (*idle, *waiting)),
        alarms=standing(status, target.sources),
        behind={
            name: str(at)
            for name in waiting
            if (at := (sources.get(name) or {}).get("published_at"))
        },
        documents=documents,
        tokens=tokens,
    )


def event_of(state: str, group: str, progress: WindowProgress, message: str) -> dict[str, Any]:
    """How the wait for a group ended: counts, names and a sentence, JSON-safe."""
    return {
        "state": state,
        "group": group,
        "documents": progress.documents,
        "tokens": progress.tokens,
        "passed": list(progress.passed),
        "idle": list(progress.idle),
        "waiting": list(progress.waiting),
        "errors": dict(progress.errors),
        "alarms": {name: dict(alarm) for name, alarm in progress.alarms.items()},
        "snapshot": progress.snapshot,
        "message": message,
    }


def starting(status: Mapping[str, Any]) -> bool:
    """Whether a node that is there still loads or compiles what it learns with.

    It has learnt nothing of what it reads, so that its sources are not silent yet.
    """
    nodes = [node or {} for node in (status.get("nodes") or {}).values()]
    present = [node for node in nodes if node.get("state") != "gone"]
    return any((node.get("report") or {}).get("warm") is False for node in present)


def _window_over(status: Mapping[str, Any], target: Target, watched_s: float) -> bool:
    """True when event time has left the window, or when no source has said anything for long.

    Event time is what a node reports as `event_now` (a replay's clock), else the latest document.
    While no node has reported a source, the pool is starting and nothing is over.
    """
    entries = list((status.get("sources") or {}).values())
    if not entries:
        return False
    reports = [(node or {}).get("report") or {} for node in (status.get("nodes") or {}).values()]
    moments = [_seconds(entry.get("published_at")) for entry in entries]
    moments += [float(report.get("event_now") or 0.0) for report in reports]
    if max(moments, default=0.0) >= target.end:
        return True
    return all(_silent(entry, watched_s) >= target.idle_after_s for entry in entries)


def _silent(entry: Mapping[str, Any], watched_s: float) -> float:
    """Seconds since the source's last document, at most as long as it has been watched.

    A task that starts after a quiet night must still give its source the time to speak. A source
    that no node reports (it may have been added to the file after the pool started) is silent.
    """
    return min(float(entry.get("idle_s") or 0.0), watched_s) if entry else watched_s


def _errors(status: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    """What the nodes last could not fetch of these sources, where they say so."""
    running: dict[str, str] = {}
    for node in (status.get("nodes") or {}).values():
        reported = ((node or {}).get("report") or {}).get("sources") or {}
        for name in names:
            entry = reported.get(name)
            if isinstance(entry, Mapping) and entry.get("last_error"):
                running[name] = str(entry["last_error"])
    return running


def standing(
    status: Mapping[str, Any], sources: Sequence[str] | None = None
) -> dict[str, dict[str, str]]:
    """The alarms that stand (of these sources): `event`, `since`, `sentence` by source."""
    alarms = status.get("alarms") or {}
    names = list(alarms) if sources is None else [name for name in sources if name in alarms]
    return {
        name: {key: str(alarms[name].get(key, "")) for key in ("event", "since", "sentence")}
        for name in names
    }


def _seconds(value: Any) -> float:
    """Unix seconds of an ISO time; 0 for None."""
    return datetime.fromisoformat(str(value)).timestamp() if value else 0.0


def grouped(sources: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Names by group from (name, group) pairs, both in the order in which they came."""
    groups: dict[str, list[str]] = {}
    for name, group in sources:
        groups.setdefault(group, []).append(name)
    return groups
