"""Where a restore gathers a home before it puts it in place.

Light: each start of the platform looks whether one was cut off.
"""

from __future__ import annotations

from pathlib import Path

STAGE = ".restoring"
VERIFIED = "verified"
"""A file in it: everything is there, and has to be put in place."""


def unfinished(home: Path) -> bool:
    """Whether a restore into this home was killed on the way."""
    return (home / STAGE / VERIFIED).is_file()
