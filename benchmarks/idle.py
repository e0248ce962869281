"""What a platform that waits for news uses: processor and memory, by process.

    python -m benchmarks idle --home var --seconds 180

Start the platform before (`yeoron up`), with its nodes reading sources that bring nothing new.
Processor seconds count, those of ended children too, so that other work on the machine only
lengthens the wait. Memory is PSS: a page that several processes share counts once.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import psutil

from embedding.platform.processes import marked
from embedding.platform.supervisor import Supervisor


def kind(words: Sequence[str]) -> str:
    """What a process below a service is."""
    line = " ".join(words)
    if "chrom" in words[0] and "--" in line:
        named = [word.removeprefix("--type=") for word in words if word.startswith("--type=")]
        return f"chromium {named[0] if named else 'browser'}"
    if "playwright" in line:
        return "playwright driver"
    modules = [after for flag, after in pairwise(words) if flag == "-m"]
    return modules[0] if modules else Path(words[0]).name + (" " + words[1] if words[1:] else "")


def usage(home: Path) -> dict[tuple[str, str], tuple[float, float, int]]:
    """(processor seconds, MB, processes) by (service, kind of process)."""
    supervisor = Supervisor(home, home / "logs")
    services = {pid: name for name, pid in supervisor.pids().items()}
    usage_of: dict[tuple[str, str], tuple[float, float, int]] = defaultdict(lambda: (0.0, 0.0, 0))
    for process in marked(home):
        with suppress(psutil.Error):
            family = [process, *process.parents()]
            service = next((services[p.pid] for p in family if p.pid in services), "supervisord")
            own = process.pid in services
            key = (service, "" if own else kind(process.cmdline() or [process.name()]))
            spent, memory, n = usage_of[key]
            memory += process.memory_full_info().pss / 1e6
            usage_of[key] = (spent + sum(process.cpu_times()[:4]), memory, n + 1)
    return dict(usage_of)


def rows(home: Path, seconds: float) -> list[dict[str, object]]:
    """Use by process over `seconds`, most processor time first."""
    before, began = usage(home), time.monotonic()
    time.sleep(seconds)
    after, spent = usage(home), time.monotonic() - began
    table = []
    for key in after | before:
        used = after.get(key, (0.0, 0.0, 0))
        share = 100 * (used[0] - before.get(key, (0.0, 0.0, 0))[0]) / spent
        table.append(
            {
                "service": key[0],
                "process": key[1],
                "percent_of_a_core": round(share, 2),
                "mb": round(used[1]),
                "processes": used[2],
            }
        )
    return sorted(table, key=lambda row: -float(str(row["percent_of_a_core"])))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks idle", description=__doc__)
    parser.add_argument("--home", type=Path, default=Path("var"))
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    table = rows(given.home, given.seconds)
    if not table:
        print(f"{given.home}: no process of a platform runs there.", file=sys.stderr)
        return 1
    if given.json:
        print(json.dumps(table, indent=2))
        return 0
    print("| service | process | % of a core | MB (PSS) | processes |\n|---|---|---|---|---|")
    for row in table:
        print("| " + " | ".join(str(value) for value in row.values()) + " |")
    whole = [sum(float(str(row[name])) for row in table) for name in list(table[0])[2:]]
    print(f"| all | | {whole[0]:.1f} | {whole[1]:.0f} | {whole[2]:.0f} |")
    return 0
