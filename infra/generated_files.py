"""Files that are written from the code: write them, or say which are not up to date."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path


def main(files: Mapping[Path, str]) -> int:
    """Exit code. With --check nothing is written, and a file that is not up to date gives 1."""
    check = "--check" in sys.argv
    stale = [path for path, text in files.items() if not _holds(path, text)]
    for path in stale:
        sys.stdout.write(f"{path}\n")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[path], encoding="utf-8")
    return int(check and bool(stale))


def _holds(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text
