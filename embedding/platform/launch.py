"""What supervisord starts in place of a service: takes on its environment, and becomes it.

supervisord's configuration has no way to write every value: a quotation mark ends it, a percent
sign expands it, a line break begins another setting. So command and environment lie in a JSON file.
Where logs are JSON, what the service writes is brought into that form.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from embedding.kernel.logs import FORMAT_VARIABLE
from embedding.kernel.private import raise_descriptor_limit


def launch(file: Path, name: str) -> None:
    """Become the service `name` of `file`: {name: {"command": [...], "environment": {...}}}."""
    service = json.loads(file.read_text(encoding="utf-8"))[name]
    command = service["command"]
    environment = {**os.environ, **service["environment"]}
    if environment.get(FORMAT_VARIABLE) == "json":
        _log_as_json(name)
    raise_descriptor_limit()
    os.execve(command[0], command, environment)  # noqa: S606


def _log_as_json(name: str) -> None:
    """What this process and its children write goes through `kernel/logs.py`, in a child.

    This process becomes the service, so that the supervisor's signals reach it and not the child,
    which ends when the last of them has closed its output.
    """
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.dup2(reading, sys.stdin.fileno())
        for end in (reading, writing):
            os.close(end)
        command = [sys.executable, "-m", "embedding.kernel.logs", name]
        os.execv(command[0], command)  # noqa: S606
    os.close(reading)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(writing, stream.fileno())
    os.close(writing)


if __name__ == "__main__":
    launch(Path(sys.argv[1]), sys.argv[2])
