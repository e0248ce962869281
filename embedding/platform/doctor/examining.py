"""All checks, wired from the settings."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from embedding.backup.databases import database_addresses
from embedding.cluster import blocked_sources, has_frontier
from embedding.kernel.errors import YeoronError
from embedding.kernel.ports import is_free
from embedding.platform.checking import contact
from embedding.platform.doctor import configuration, content, machine, stores
from embedding.platform.doctor.diagnosis import Diagnosis, HealthCheck, diagnose
from embedding.platform.operate import running_supervisor
from embedding.platform.ports import port_settings
from embedding.settings import Settings, given_settings, load_settings
from embedding.snapshots.store import SnapshotStore
from embedding.sources.config import load_sources
from embedding.sources.kinds import SOURCES

_FREE_OF_SETTINGS: dict[str, HealthCheck] = {
    "python": machine.check_python,
    "limits": machine.check_limits,
    "shared memory": machine.check_shared_memory,
}


def examine() -> list[Diagnosis]:
    """Try everything; where the settings cannot be read, what does not need them."""
    try:
        settings = load_settings()
    except YeoronError as error:
        advice = "All that needs settings was not tried."
        found = Diagnosis("wrong", str(error), advice, "settings")
        return [found, *diagnose(_FREE_OF_SETTINGS)]
    return diagnose(_FREE_OF_SETTINGS | settings_checks(settings))


def settings_checks(settings: Settings) -> dict[str, HealthCheck]:
    """The checks that need settings, by name."""
    paths = settings.paths
    ports = port_settings(settings)
    databases: dict[str, HealthCheck] = {
        f"database of {part}": partial(stores.check_database, part, address)
        for part, address in database_addresses(settings).items()
    }
    return {
        "settings": lambda: configuration.check_settings(settings, given_settings()),
        "packages": lambda: machine.check_packages(needed_extras(settings)),
        "memory": partial(machine.check_memory, settings.cluster.nodes),
        "disk": partial(machine.check_disk, paths.home),
        "clock": partial(machine.check_clock, paths.home),
        "ports": lambda: machine.check_ports(
            ports,
            {port: is_free(port) for port in ports.values()},
            runs=running_supervisor(settings) is not None,
        ),
        "home": partial(stores.check_home, paths.home),
        "certificates": lambda: stores.check_certificates(certificates(settings)),
        **databases,
        "frontier": lambda: stores.check_frontier(
            settings.database_address("frontier"), exists=has_frontier(settings)
        ),
        "windows": lambda: stores.check_windows(SnapshotStore(settings.snapshot_store).list()),
        "sources": lambda: content.check_sources(paths.sources, blocked_sources(settings)),
        "contact": lambda: content.check_contact(
            settings.crawl.user_agent, reached=contact(settings.crawl.user_agent)
        ),
        "browser": lambda: content.check_browser(paths.sources, settings.crawl.browser),
        "tokenizer": partial(content.check_tokenizer_runs, settings.text),
    }


def needed_extras(settings: Settings) -> dict[str, str]:
    """Extras that `yeoron up` with these settings needs, and what for."""
    needed = {"airflow": "Airflow", "mlflow": "MLflow", "platform": "`yeoron up`"}
    if settings.text.tokenizer == "mecab":
        needed["mecab"] = "text.tokenizer mecab"
    if str(settings.server.snapshots or "").startswith("s3://"):
        needed["s3"] = f"server.snapshots {settings.server.snapshots}"
    try:
        sources = load_sources(settings.paths.sources)
    except YeoronError:
        return needed
    if rendered := [one.name for one in sources if SOURCES.traits(one.kind).browser]:
        needed["render"] = f"The source {rendered[0]}"
    return needed


def certificates(settings: Settings) -> dict[str, Path]:
    """Certificates that are set, or made by the platform, by what they are for."""
    found = {
        "server.tls_cert": settings.server.tls_cert,
        "server.tls_client_ca": settings.server.tls_client_ca,
        "server.tls_ca": settings.server.tls_ca,
        "web.tls_cert": settings.web.tls_cert,
    }
    paths = settings.paths
    made = {"Dask": paths.dask_certificate[0], "the server": paths.server_certificate[0]}
    found |= {name: path for name, path in made.items() if path.is_file()}
    return {name: path for name, path in found.items() if path is not None}
