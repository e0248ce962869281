"""The demo's settings: a home of its own, the platform's ports, the simulated web (its sources, and
the service).
"""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embedding.kernel.config import toml_of
from embedding.kernel.errors import InputError
from embedding.kernel.records import Window, WindowUnit
from embedding.platform.ports import variable
from embedding.platform.services import Service
from embedding.settings import PREFIX, SETTINGS_VARIABLE, Settings, load_settings
from yeoron_simweb.config import SimwebConfig
from yeoron_simweb.resolve import resolve_corpus
from yeoron_simweb.sources import sources_toml

MOST_DOCUMENTS = 3_400
MOST_WINDOWS = 5
DEFAULT_MONTH_SECONDS = 12.0
"""Least seconds of a month: it plays no faster than its nodes learn it (`pace.py`)."""


@dataclass(frozen=True)
class DemoPlan:
    """What the demo plays.

    windows     the months that hold documents, in order
    documents   how many documents they hold
    arguments   options of `yeoron simweb`
    """

    corpus: str
    windows: tuple[Window, ...]
    documents: int
    arguments: tuple[str, ...]


def plan_demo(corpus: Path | None, seconds_per_month: float | None) -> DemoPlan:
    """Choose the months to play: the latest run of months that fits the demo's time.

    Months are taken from the corpus's end backwards while they hold at most `MOST_DOCUMENTS`
    documents together and are at most `MOST_WINDOWS`; at least two are needed to compare.
    """
    played = resolve_corpus(SimwebConfig(corpus=corpus))
    counts = Counter(Window.holding(each.when, WindowUnit.MONTH) for each in played.documents)
    months = sorted(counts.items(), key=lambda item: item[0].start)
    if len(months) < 2:
        raise InputError(
            f"corpus {played.name}: documents of {len(months)} month(s); at least two months are "
            "needed to see a change."
        )
    chosen: list[tuple[Window, int]] = []
    for window, count in reversed(months):
        total = sum(n for _, n in chosen) + count
        if len(chosen) >= 2 and (total > MOST_DOCUMENTS or len(chosen) >= MOST_WINDOWS):
            break
        chosen.insert(0, (window, count))
    windows = tuple(window for window, _ in chosen)
    each = seconds_per_month or DEFAULT_MONTH_SECONDS
    last = windows[-1].end.date().toordinal() - 1
    arguments = (
        *(("--corpus", _given(corpus)) if corpus else ()),
        *("--from", windows[0].start.date().isoformat()),
        *("--to", type(windows[0].start.date()).fromordinal(last).isoformat()),
        *("--seconds-per-month", str(each)),
        *("--max-backlog", "100", "--crawl-delay", "0"),
    )
    documents = sum(n for _, n in chosen)
    return DemoPlan(played.name, windows, documents, arguments)


def _given(corpus: Path) -> str:
    """The corpus as another process in another folder finds it; `generated` is a name."""
    return str(corpus.resolve()) if corpus.exists() else str(corpus)


def write_demo_settings(settings: Settings, home: Path) -> Settings:
    """Write the demo's settings and sources into `home`, make them current, and read them."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True, mode=0o700)
    simweb = f"http://127.0.0.1:{settings.ports.simweb}"
    sources = home / "sources.toml"
    sources.write_text(sources_toml(simweb, every=2.0), encoding="utf-8")
    sections: dict[str, dict[str, Any]] = {
        "paths": {"home": str(home.resolve()), "sources": str(sources.resolve())},
        "crawl": {
            "user_agent": "Yeoron-demo/0.1 (simulated web on this machine)",
            "allow_private_hosts": [f"127.0.0.1:{settings.ports.simweb}"],
            "rate": 200.0,
            "per_host": 4,
            "extract_processes": 0,
            "replay_clock_url": f"{simweb}/clock.json",
        },
        # The web waits for the nodes: they have nothing to spare their cores for.
        "node": {"rehearsal_share": 1.0},
        "server": {
            "window": "month",
            "cut": "watermark",
            # A month ends once all of it is learnt: no source has anything left to wait for.
            "source_idle_s": 4.0,
            "convergence_seconds": 86_400,
            "min_count": 4,
            "port": settings.server.port,
            "http_port": settings.server.http_port,
        },
        "ports": settings.ports.model_dump(),
        # What is played is older than a year: its addresses are not to go on the first day.
        "retention": {"evidence_days": 0},
        "evaluation": {"gold": gold_files()},
    }
    file = home / "settings.toml"
    file.write_text(toml_of(sections), encoding="utf-8")
    os.environ[SETTINGS_VARIABLE] = str(file.resolve())
    for name in ("paths.home", "paths.sources", "crawl.frontier"):
        os.environ.pop(variable(name), None)
    # The demo's tables are in its own home, not beside those of a platform.
    for name in [name for name in os.environ if name.startswith(f"{PREFIX}DATABASE")]:
        del os.environ[name]
    return load_settings()


def gold_files() -> list[str]:
    """Korean gold sets beside the corpus (`gold/` in $YEORON_DATA or ../shared/data), if any."""
    folders = [os.environ.get("YEORON_DATA"), "../shared/data"]
    for folder in (Path(name) for name in folders if name):
        paths = [folder / "gold" / name for name in ("ws353_ko.tsv", "analogy_ko.txt")]
        if any(path.is_file() for path in paths):
            return [str(path.resolve()) for path in paths if path.is_file()]
    return []


def simweb_service(settings: Settings, *arguments: str) -> Service:
    """`yeoron simweb` with these options, on the port `ports.simweb`."""
    port = settings.ports.simweb
    return Service(
        name="simweb",
        command=(
            *(sys.executable, "-m", "embedding.cli"),
            *("simweb", "--port", str(port), *arguments),
        ),
        ready=f"http://127.0.0.1:{port}/clock.json",
    )
