"""A network of its own whose one link, loopback, carries so many bits a second (Linux, root).

Everything that a process in it sends to another there shares the link, both directions together,
as through the network card of the server. Token bucket of `tc` (tbf); other traffic of the machine
is not touched.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from embedding.kernel.errors import ConfigError


@contextmanager
def throttled(bits_per_second: int) -> Iterator[list[str]]:
    """The words to put before a command that is to run behind the link."""
    if os.geteuid() or not (shutil.which("ip") and shutil.which("tc")):
        raise ConfigError(
            "a throttled link: it needs root and the commands ip and tc (iproute2); without them "
            "the bench measures bytes alone."
        )
    name = f"yeoron-bench-{os.getpid()}"
    within = ["ip", "netns", "exec", name]
    _run("ip", "netns", "add", name)
    try:
        _run(*within, "ip", "link", "set", "lo", "up")
        rate = f"{bits_per_second}bit"
        _run(
            *(*within, "tc", "qdisc", "add", "dev", "lo", "root", "tbf"),
            *("rate", rate, "burst", "256kb", "latency", "500ms"),
        )
        yield within
    finally:
        _run("ip", "netns", "del", name)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ConfigError(f"{' '.join(command)}: {done.stderr.strip()}.")
