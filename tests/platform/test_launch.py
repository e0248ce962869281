"""How a service begins: with its environment, and with all the files that it may open."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

SHOW = (
    "import os, resource; print(os.environ['GIVEN'], *resource.getrlimit(resource.RLIMIT_NOFILE))"
)


def test_a_service_may_open_as_many_files_as_the_system_allows(tmp_path: Path) -> None:
    """A shell allows 1,024, which a stranger's connections to its port would take."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    file = tmp_path / "services.json"
    given = {"GIVEN": 'a "quoted" %value'}
    service = {"command": [sys.executable, "-c", SHOW], "environment": given}
    file.write_text(json.dumps({"one": service}))
    done = subprocess.run(
        [sys.executable, "-m", "embedding.platform.launch", str(file), "one"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard)),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.split(maxsplit=3)[-1].strip() == f"{hard} {hard}"
