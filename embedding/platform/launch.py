"""What supervisord starts in place of a service: takes on its environment, and becomes it.

supervisord's configuration has no way to write every value: a quotation mark ends it, a percent
sign expands it, a line break begins another setting. So command and environment lie in a JSON file.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def launch(file: Path, name: str) -> None:
    """Become the service `name` of `file`: {name: {"command": [...], "environment": {...}}}."""
    service = json.loads(file.read_text(encoding="utf-8"))[name]
    command = service["command"]
    os.execve(command[0], command, {**os.environ, **service["environment"]})  # noqa: S606


if __name__ == "__main__":
    launch(Path(sys.argv[1]), sys.argv[2])
