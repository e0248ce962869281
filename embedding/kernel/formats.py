"""Versions of what is stored: an older one is opened, a newer one refused in a sentence."""

from __future__ import annotations

from collections.abc import Collection


def unreadable(found: object, readable: Collection[int]) -> str:
    """Why a stored format cannot be read here, as a part of a sentence; "": it can be.

    found  what the store says; readable  the versions that this code opens
    """
    if isinstance(found, int) and found in readable:
        return ""
    known = " and ".join(str(one) for one in sorted(readable))
    if isinstance(found, int) and found > max(readable):
        return (
            f"format {found} is of a newer version of Yeoron; this version reads {known}: use that "
            "version, or a backup from before it"
        )
    return f"format {found!r} is not known; this version reads {known}"
