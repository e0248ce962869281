"""`yeoron snapshot amend`: what the server is asked, and what it answers in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedding.exchange.channel import ask
from embedding.kernel.errors import RefusedError, UnavailableError
from embedding.snapshots.lacking import Missing, sentence

if TYPE_CHECKING:
    from embedding.exchange.config import ExchangeConfig
    from embedding.settings import Settings
    from embedding.snapshots.snapshot import Snapshot

CALL = "amend"
_LONGEST_S = 600.0
"""Nodes read a window again meanwhile, as they do for a cut."""


def amended(snapshot: Snapshot, chosen: Settings, server: str | None = None) -> list[str]:
    """Ask for what a snapshot lacks of its window; what was published, and what is missing still.

    server  where it is; None: as the settings say

    Raises UnavailableError where no server answers, and RefusedError where it cannot amend the
    window, or no window at all.
    """
    label = snapshot.manifest.window.label
    location, line = server or chosen.server_location, chosen.line(server, operator=True)
    if not snapshot.ref.lacks and not _late(location, line, label):
        return [f"{snapshot.id}: it lacks nothing of {label}."]
    start = int(snapshot.ref.window_start.timestamp())
    try:
        found = ask(location, line, CALL, {"window": start}, _LONGEST_S)
    except UnavailableError as error:
        raise UnavailableError(
            f"{label} is not amended: {error} Nodes of a running platform read a window again; "
            "`yeoron up` starts it."
        ) from error
    except RefusedError as error:
        if f"action '{CALL}'" in str(error):
            raise RefusedError(
                f"{label} is not amended: the server at {location} is of an older version, which "
                "cannot do it; start the platform again with this one (`yeoron down`, `yeoron up`)."
            ) from error
        raise RefusedError(f"{label} is not amended: {error}") from error
    left = [sentence(Missing.model_validate(one), label) for one in found["missing"]]
    done = f"{found['id']}: revision {found['revision']} of {label}."
    return [done, *(left or ["It lacks nothing of its window any more."])]


def _late(location: str, line: ExchangeConfig, label: str) -> int:
    """Documents that came after the cut, which the server alone knows; 0 where none answers."""
    try:
        windows = ask(location, line, "status", {})["windows"]
    except (UnavailableError, RefusedError):
        return 0
    return int(windows.get(label, {}).get("late_documents", 0))
