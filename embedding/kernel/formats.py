"""Versions of what is stored: an older one is opened, a newer one refused in a sentence."""

from __future__ import annotations

from collections.abc import Collection


def unreadable(version: object, readable: Collection[int]) -> str:
    """Why a stored format cannot be read here, as a part of a sentence; "": it can be.

    version  what the store says; readable  the versions that this code opens
    """
    if isinstance(version, int) and version in readable:
        return ""
    known = " and ".join(str(number) for number in sorted(readable))
    if isinstance(version, int) and version > max(readable):
        return (
            f"format {version} is of a newer version of Yeoron; this version reads {known}: use "
            "that version, or a backup from before it"
        )
    return f"format {version!r} is not known; this version reads {known}"
