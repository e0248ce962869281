"""The result file of a measurement: figures with date, tree, hardware, versions and command."""

from __future__ import annotations

import json
import os
import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil

from embedding import __version__
from embedding.kernel.errors import ConfigError, YeoronError
from yeoron_bench.markdown import table as markdown

RESULTS = Path()
"""Where a user's measurements write: the current folder."""
FIELDS = ("date", "tree", "hardware", "versions", "command")
"""Of the front matter of a result file, in this order."""
_LONGEST = 12
"""Values that a cell shows; longer lists are in the JSON file alone."""


def facts(
    bench: str, packages: Sequence[str], machine: dict[str, Any] | None = None
) -> dict[str, Any]:
    """What a report begins with: which bench, when, on what and with what.

    machine  as it was before the runs, its load too; None: as it is now
    """
    return {
        "bench": bench,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "tree": tree(),
        "hardware": hardware() if machine is None else machine,
        "versions": versions(packages),
        "command": command(sys.argv),
    }


def keep(
    report: dict[str, Any], table: str | None = None, *, results: Path = RESULTS, part: str = ""
) -> Path:
    """Write BENCH-TIME.md, front matter and table, and all figures as JSON; returns the former.

    report  begins with `facts`
    table   for readers, with a title; None: made of the report
    part    what tells this run from others of the bench
    """
    results.mkdir(parents=True, exist_ok=True)
    when = datetime.fromisoformat(report["when"])
    name = "-".join(filter(None, (report["bench"], f"{when:%Y-%m-%dT%H%M%S}", part)))
    figures = json.dumps(report, ensure_ascii=False, indent=1)
    (results / f"{name}.json").write_text(figures + "\n", encoding="utf-8")
    path = results / f"{name}.md"
    path.write_text(page(report, table), encoding="utf-8")
    return path


def keep_and_print(
    report: dict[str, Any], table: str | None = None, *, results: Path = RESULTS, part: str = ""
) -> None:
    """`keep` a report, and print its table."""
    path = keep(report, table, results=results, part=part)
    print(table or path.read_text(encoding="utf-8"))


def page(report: Mapping[str, Any], table: str | None = None) -> str:
    """The result file: front matter with FIELDS, then the table."""
    if table is None:
        title = f"# {report['bench']}, {report['when'][:10]}\n\n"
        own = {k: v for k, v in report.items() if k not in {"bench", "when", *FIELDS}}
        table = title + as_tables(own)
    front = {
        "date": report["when"][:10],
        "tree": report["tree"],
        "hardware": _listed(report["hardware"]),
        "versions": _listed(report["versions"]),
        "command": report["command"],
    }
    lines = ["---", *(f"{name}: {front[name]}" for name in FIELDS), "---", ""]
    return "\n".join(lines) + "\n" + table.rstrip("\n") + "\n"


def as_tables(value: Mapping[str, Any], above: str = "") -> str:
    """Nested figures as Markdown: values in one table, then a table for each list of figures."""
    rows, parts = [], []
    for name, under in value.items():
        heading = f"{above} / {name}" if above else str(name)
        if isinstance(under, Mapping) and _alike([*under.values()]):
            parts.append(f"**{heading}**\n\n{_list([{'': key, **under[key]} for key in under])}")
        elif isinstance(under, Mapping):
            parts += [as_tables(under, heading)] if under else []
        elif isinstance(under, (list, tuple)) and any(isinstance(row, Mapping) for row in under):
            parts.append(f"**{heading}**\n\n{_list(under)}")
        else:
            rows.append((name, _cell(under)))
    if rows:
        own = markdown(("figure", "value"), rows)
        parts.insert(0, f"**{above}**\n\n{own}" if above else own)
    return "\n".join(parts)


def _alike(values: Sequence[Any]) -> bool:
    """Whether these are records with a figure in common, more than one."""
    records = [value for value in values if isinstance(value, Mapping)]
    return 1 < len(records) == len(values) and bool(set.intersection(*map(set, records)))


def _list(values: Sequence[Any]) -> str:
    rows = [row for row in values if isinstance(row, Mapping)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    return markdown(names, [[_cell(row.get(name)) for name in names] for row in rows])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.5g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_cell(part)}" for name, part in value.items())
    if isinstance(value, (list, tuple)):
        if len(value) > _LONGEST:
            return f"{len(value)} values"
        return ", ".join(_cell(part) for part in value)
    return str(value)


def _listed(value: Any) -> str:
    return value if isinstance(value, str) else _cell(value)


def tree() -> str:
    """The version, and in a checkout the commit."""
    root = Path(__file__).resolve().parents[2]
    git = shutil.which("git")
    if git is None or not (root / ".git").exists():
        return f"yeoron {__version__}"
    done = subprocess.run(
        [git, "-C", str(root), "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"yeoron {__version__} {done.stdout.strip()}".strip()


def command(arguments: Sequence[str]) -> str:
    """The command line, of each path the name alone: folders say nothing to others."""
    program = Path(arguments[0])
    name = program.name
    if name == "__main__.py":
        name = f"python -m {program.parent.name}"
    elif program.suffix == ".py":
        name = f"python -m {program.parent.name}.{program.stem}"
    shown = []
    for each in arguments[1:]:
        option, equals, value = each.rpartition("=")
        shown.append(option + equals + (Path(value).name if "/" in value else value))
    return " ".join([name, *shown])


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Of each package, "none" for one that is not installed, and of Python."""
    return {name: _version(name) for name in packages} | {"python": platform.python_version()}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def need(module: str, what: str) -> None:
    """ConfigError unless a package of the extra `bench` is installed.

    what  needs it, and how to do without
    """
    if find_spec(module) is None:
        raise ConfigError(f"{module}: not installed, and {what}: `pip install {module}` brings it.")


def hardware() -> dict[str, Any]:
    """Processor, cores, memory and load of this machine."""
    cpu = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text(encoding="utf-8").splitlines()
        models = [line for line in lines if line.startswith("model name")]
        cpu = models[0].split(":", 1)[1].strip() if models else cpu
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "system": platform.system(),
        "load_1min": os.getloadavg()[0],
    }


def free_port() -> int:
    """A port of loopback that nobody has at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ended(bench: Callable[[], object]) -> int:
    """Exit code of a bench: 0, or that of its error, which is said on stderr in one sentence."""
    try:
        bench()
    except YeoronError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0
