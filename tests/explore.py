"""`make explore`: generated tests with new examples, round after round, until the time is up.

`make test` looks at the same examples each time. This looks for others: each round has a seed of
its own, which is printed. A find is reproduced by the command that is printed with it, and is to be
kept as a test of its own.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
GRACE_S = 60
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?)(?: - .*)?$", re.MULTILINE)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make explore", description=__doc__)
    parser.add_argument("--seconds", type=int, default=1800, help="time that all rounds may take")
    parser.add_argument("--seed", type=int, default=None, help="seed of the first round")
    parser.add_argument("--rounds", type=int, default=10**6, help="most rounds")
    parser.add_argument("--scale", type=float, default=1.0, help="times a test's usual examples")
    parser.add_argument("where", nargs="*", default=["tests"], help="folders, files or test ids")
    return parser.parse_args()


def explored(seed: int, scale: float, where: Sequence[str], seconds: float) -> tuple[str, bool]:
    """Run one round: what pytest printed, and whether it came to its end."""
    workers = min(4, (os.cpu_count() or 1) + 1)
    command = [
        *(sys.executable, "-m", "pytest", "-m", "hypothesis", "--hypothesis-profile=explore"),
        *(f"--hypothesis-seed={seed}", "-q", "--timeout=900", "-n", str(workers)),
        *("--dist", "worksteal", *where),
    ]
    running = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "EXAMPLES": str(scale)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        return running.communicate(timeout=seconds)[0], True
    except subprocess.TimeoutExpired:
        running.send_signal(signal.SIGINT)
    try:
        return running.communicate(timeout=GRACE_S)[0], False
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        return running.communicate()[0], False


def main() -> int:
    """0: nothing found; 1: a test failed; 2: pytest could not run."""
    asked = arguments()
    first = random.SystemRandom().randrange(10**6) if asked.seed is None else asked.seed
    deadline = time.monotonic() + asked.seconds
    found: dict[str, int] = {}
    for seed in range(first, first + asked.rounds):
        left = deadline - time.monotonic()
        if left < 1:
            break
        print(f"seed {seed}: {left:.0f} s left", flush=True)
        printed, ended = explored(seed, asked.scale, asked.where, left)
        failed = FAILED.findall(printed)
        if ended and not failed and not re.search(r"\d+ passed", printed):
            print(printed)
            return 2
        if failed:
            print(printed)
        for test in failed:
            found.setdefault(test, seed)
    for test, seed in found.items():
        print(f"found: make explore SEED={seed} ROUNDS=1 SCALE={asked.scale:g} WHERE='{test}'")
    if not found:
        print("nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
