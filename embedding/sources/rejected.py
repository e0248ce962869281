"""Sources that a person did not want: addresses and when, nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from embedding.kernel.durable import replaced
from embedding.kernel.errors import ConfigError


def rejected(path: Path) -> dict[str, str]:
    """Time (ISO, UTC) of the rejection by address; empty when there is no file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: not a JSON object of addresses and times.") from error
    if not isinstance(found, dict):
        raise ConfigError(f"{path}: not a JSON object of addresses and times.")
    return {str(url): str(when) for url, when in found.items()}


def reject(path: Path, urls: Sequence[str], when: datetime | None = None) -> None:
    """Remember these addresses, in one atomic switch."""
    at = (when or datetime.now(UTC)).isoformat(timespec="seconds")
    known = rejected(path)
    text = json.dumps({**known, **{url: known.get(url, at) for url in urls}}, indent=1)
    with replaced(path) as file:
        file.write(text.encode() + b"\n")
