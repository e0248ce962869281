"""Servers in processes of their own, at once there: forks of one that has imported what they need.

To import a server takes longer than most of what these tests do with one, and they kill many.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
from functools import cache

import psutil

from embedding.server.config import ServerConfig

PATIENCE_S = 300.0
"""What does nothing for so long hangs: on a busy machine a process takes a minute to start."""
PARENT = f"""
import json, os, signal, sys
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.groups import link
from embedding.server.service import ParameterServer
from embedding.server.shards import fleet

fleet.START_S = link.START_S = {PATIENCE_S}
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    config, sync, dim = json.loads(line)
    child = os.fork()
    if child:
        print(child, flush=True)
        continue
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    config = ServerConfig.model_validate_json(config)
    ParameterServer(config, SyncConfig(**sync), dim=dim).serve_forever()
    break
"""


def serve(config: ServerConfig, policy: str, dim: int) -> psutil.Process:
    """A server that runs until it is killed."""
    parent = _parent()
    assert parent.stdin is not None
    assert parent.stdout is not None
    request = [config.model_dump_json(), {"policy": policy}, dim]
    parent.stdin.write(json.dumps(request) + "\n")
    parent.stdin.flush()
    return psutil.Process(int(parent.stdout.readline()))


def kill(server: psutil.Process) -> None:
    """kill -9, and wait until it is gone; nothing where it has ended."""
    try:
        server.kill()
        server.wait(PATIENCE_S)
    except psutil.NoSuchProcess:
        return


@cache
def _parent() -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PARENT]
    found = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(found.communicate)
    return found
