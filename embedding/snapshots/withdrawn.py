"""Which snapshots were taken out of the series, when and why: a note beside them.

The files of a withdrawn snapshot stay where they are, so that nothing is lost by a mistake; it is
in no list, is nobody's `latest`, and opening it says why.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from embedding.kernel.errors import SnapshotError

NOTE = "withdrawn.json"


@dataclass(frozen=True)
class Withdrawn:
    """When (UTC) and why."""

    at: datetime
    reason: str


def read_note(text: str | None, where: str) -> dict[str, Withdrawn]:
    """What the note says by snapshot id; SnapshotError when it cannot be read."""
    if text is None:
        return {}
    try:
        return {
            str(name): Withdrawn(datetime.fromisoformat(entry["at"]), str(entry["reason"]))
            for name, entry in json.loads(text).items()
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise SnapshotError(
            f"snapshot store {where}: {NOTE} cannot be read ({type(error).__name__}); put back "
            "a whole one, or remove it to see every snapshot."
        ) from error


def written(text: str | None, ids: Sequence[str], reason: str) -> str:
    """The note with these snapshots withdrawn now; an entry that is there stays as it is."""
    held = read_note(text, "this one")
    now = Withdrawn(datetime.now(UTC), reason)
    return _text({**dict.fromkeys(ids, now), **held})


def without(text: str | None, ids: Sequence[str]) -> str:
    """The note without these snapshots."""
    held = read_note(text, "this one")
    return _text({name: entry for name, entry in held.items() if name not in set(ids)})


def _text(held: Mapping[str, Withdrawn]) -> str:
    entries = {
        name: {"at": entry.at.isoformat(), "reason": entry.reason}
        for name, entry in sorted(held.items())
    }
    return json.dumps(entries, ensure_ascii=False, indent=2) + "\n"
