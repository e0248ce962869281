"""Words and sentences that the grammars choose from: tests/text/phrases/, a file each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def phrases(name: str) -> Any:
    """Name of a table → tuples of texts, as `name`.json has them."""
    path = Path(__file__).with_name("phrases") / f"{name}.json"
    return _fixed(json.loads(path.read_text(encoding="utf-8")))


def _fixed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _fixed(each) for key, each in value.items()}
    return tuple(map(_fixed, value)) if isinstance(value, list) else value
