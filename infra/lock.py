"""Write infra/locks: every package that is installed, by version and by the hash of its files.

`make lock` calls it. It needs uv, which asks an index; installing needs neither. Versions stay as
the locks have them; name packages, or `all`, to raise them.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.tags import compatible_tags, cpython_tags
from packaging.utils import parse_wheel_filename

ROOT = Path(__file__).parents[1]
LOCKS = ROOT / "infra" / "locks"
PYTHONS = ((3, 11), (3, 12), (3, 13))
MACHINES = ("x86_64", "aarch64")
GPU = re.compile(r"torch|triton|(nvidia|cuda)-.*")
TOOLS = ("--extra", "all", "--group", "test", "--group", "docs", "--group", "dev")
EXPORTS = {
    "build": ("--only-group", "build"),
    "run": ("--extra", "all"),
    "test": TOOLS,
    "more": (*TOOLS, "--extra", "bench", "--group", "chart"),
}
FOR = {
    "build": "What installs the others.",
    "run": "What running needs, without torch.",
    "cuda": "torch for GPUs, and what that needs. cpu.txt has the one for CPUs.",
    "test": "What tests, checks and documentation need beyond that.",
    "more": "What nothing installs: for a bench of crawlers, and for the check of the Helm chart.",
}
PLAIN = ("--no-header", "--no-annotate", "--no-hashes", "--no-emit-project", "--no-default-groups")
TARGETS = tuple(product(PYTHONS, MACHINES))
PATCHES = (0, 99)


def main() -> int:
    """Exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("raised", nargs="*", help="packages whose version may rise; or all")
    raised = parser.parse_args().raised
    pins = [] if "all" in raised else [pin for pin in pinned() if pin.split("==")[0] not in raised]
    with tempfile.TemporaryDirectory() as folder:
        project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        # A project that uv neither builds nor installs.
        project = project.replace('dynamic = ["version"]', 'version = "0"')
        project += f"\n[tool.uv]\npackage = false\nconstraint-dependencies = {pins}\n"
        (Path(folder) / "pyproject.toml").write_text(project, encoding="utf-8")
        uv("lock", folder=folder)
        files = tomllib.loads((Path(folder) / "uv.lock").read_text(encoding="utf-8"))
        known = {(each["name"], each.get("version")): each for each in files["package"]}
        wanted = {
            name: uv("export", "--frozen", *PLAIN, *options, folder=folder).splitlines()
            for name, options in EXPORTS.items()
        }
    locks: dict[str, list[str]] = {name: [] for name in FOR}
    written: set[str] = set()
    for name, lines in wanted.items():
        new = [line for line in lines if line not in written]
        written.update(new)
        for line in new:
            wish = Requirement(line)
            where = "cuda" if name == "run" and GPU.fullmatch(wish.name) else name
            locks[where] += entry(wish, known)
    for name, text in locks.items():
        head = f"# {FOR[name]} Written by `make lock`.\n"
        (LOCKS / f"{name}.txt").write_text(head + "".join(text), encoding="utf-8")
    return 0


def uv(*arguments: str, folder: str) -> str:
    """What it prints; ends the process where it fails, which it says itself."""
    done = subprocess.run(  # noqa: S603
        ["uv", *arguments, "--quiet"],  # noqa: S607
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout


def pinned() -> Iterable[str]:
    """`name==version`, with its condition, of all that is locked."""
    for name in FOR:
        path = LOCKS / f"{name}.txt"
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            if "==" in line and not line.startswith((" ", "#")):
                yield line.removesuffix("\\").strip()


def entry(wish: Requirement, known: Mapping[tuple[str, str], Mapping]) -> list[str]:
    """Lines of one package: none where no target needs it.

    known  (name, version) → its wheels and source, each with an address and a hash
    """
    needing = [target for target in TARGETS if needed(wish.marker, *target)]
    if not needing:
        return []
    every = all(needed(wish.marker, *target, patch) for target in TARGETS for patch in PATCHES)
    version = str(wish.specifier).removeprefix("==")
    condition = "" if every else f" ; {wish.marker}"
    hashes = sorted(chosen(known[wish.name, version], needing))
    lines = [f"{wish.name}=={version}{condition}", *(f"    --hash={each}" for each in hashes)]
    return [" \\\n".join(lines) + "\n"]


def needed(marker: Marker | None, python: tuple[int, int], machine: str, *patches: int) -> bool:
    """With any of these patches of that Python, on that machine."""
    return marker is None or any(
        marker.evaluate(
            {
                "implementation_name": "cpython",
                "os_name": "posix",
                "platform_machine": machine,
                "platform_python_implementation": "CPython",
                "platform_system": "Linux",
                "python_full_version": f"{python[0]}.{python[1]}.{patch}",
                "python_version": f"{python[0]}.{python[1]}",
                "sys_platform": "linux",
            }
        )
        for patch in patches or PATCHES
    )


def chosen(package: Mapping, targets: Iterable[tuple[tuple[int, int], str]]) -> set[str]:
    """Hashes of its wheels for these targets, and of its source where one of them has no wheel."""
    hashes = set()
    for python, machine in targets:
        fitting = [
            each["hash"] for each in package.get("wheels", ()) if fits(each, python, machine)
        ]
        hashes |= set(fitting or [package["sdist"]["hash"]])
    return hashes


def fits(wheel: Mapping, python: tuple[int, int], machine: str) -> bool:
    """Whether pip would install that file there."""
    tags = {
        (tag.interpreter, tag.abi)
        for tag in (
            *cpython_tags(python, platforms=["any"]),
            *compatible_tags(python, f"cp{python[0]}{python[1]}", ["any"]),
        )
    }
    return any(
        (tag.interpreter, tag.abi) in tags
        and (tag.platform == "any" or re.fullmatch(rf"(many)?linux.*_{machine}", tag.platform))
        for tag in parse_wheel_filename(wheel["url"].rsplit("/", 1)[-1])[3]
    )


if __name__ == "__main__":
    sys.exit(main())
