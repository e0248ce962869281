"""All checks, wired from the settings; and whether those that were given mean anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from embedding.backup.databases import database_addresses
from embedding.cluster import blocked_sources, has_frontier
from embedding.kernel.errors import YeoronError
from embedding.kernel.ports import is_free
from embedding.platform.checking import contact
from embedding.platform.doctor import content, machine, stores
from embedding.platform.doctor.diagnosis import Diagnosis, HealthCheck, diagnose, fine, warn
from embedding.platform.operate import running_supervisor
from embedding.platform.ports import port_settings
from embedding.server.config import SyncConfig
from embedding.settings import GivenSettings, Settings, given_settings, load_settings
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
        diagnosis = Diagnosis("wrong", str(error), advice, "settings")
        return [diagnosis, *diagnose(_FREE_OF_SETTINGS)]
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
        "settings": lambda: check_settings(settings, given_settings()),
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
    if rendered := [source.name for source in sources if SOURCES.traits(source.kind).browser]:
        needed["render"] = f"The source {rendered[0]}"
    return needed


def certificates(settings: Settings) -> dict[str, Path]:
    """Certificates that are set, or made by the platform, by what they are for."""
    files = {
        "server.tls_cert": settings.server.tls_cert,
        "server.tls_client_ca": settings.server.tls_client_ca,
        "server.tls_ca": settings.server.tls_ca,
        "web.tls_cert": settings.web.tls_cert,
    }
    paths = settings.paths
    made = {"Dask": paths.dask_certificate[0], "the server": paths.server_certificate[0]}
    files |= {name: path for name, path in made.items() if path.is_file()}
    return {name: path for name, path in files.items() if path is not None}


_Idle = Callable[[Settings], bool]


def _policy(*names: str) -> _Idle:
    return lambda s: s.sync.policy not in names


_IDLE: dict[str, tuple[_Idle, str]] = {
    "sync.staleness": (_policy("ssp", "auto"), "sync.policy is not ssp"),
    "sync.n_push": (_policy("asp", "auto"), "sync.policy is not asp"),
    "sync.n_fetch": (_policy("asp", "auto"), "sync.policy is not asp"),
    **{
        f"sync.{name}": (_policy(*kind.ONLY), f"sync.policy is not {' or '.join(kind.ONLY)}")
        for kind in SyncConfig.ADDED or ()
        for name in kind.model_fields
    },
    "server.tls_client_ca": (lambda s: s.server.tls_cert is None, "there is no server.tls_cert"),
    "model.buckets": (lambda s: not s.model.traits.has_subwords, "the model has no n-grams"),
    "model.negative": (lambda s: not s.model.traits.draws_noise, "the model draws no noise"),
    **{
        f"notify.{name}": (
            lambda s: not s.notify.email_to and not s.notify.webhook.get_secret_value(),
            "nobody is told: no notify.email_to and no webhook",
        )
        for name in ("words", "rankings", "false_discovery", "most")
    },
    **{
        f"notify.{name}": (lambda s: not s.notify.email_to, "there is no notify.email_to")
        for name in ("smtp_host", "smtp_port", "smtp_user", "smtp_password", "smtp_tls")
    },
}
"""Setting → where it has no effect, and why."""


def check_settings(settings: Settings, given: GivenSettings) -> Iterator[Diagnosis]:
    """Settings that were given and do nothing with the others as they are."""
    reasons = {name: why for name, (is_idle, why) in _IDLE.items() if is_idle(settings)}
    reasons |= {f"server.{name}": why for name, why in settings.server.idle().items()}
    idle = [
        (f"{section}.{name}", given.origin(section, name))
        for section, values in given.values.items()
        for name in values
        if f"{section}.{name}" in reasons
    ]
    for name, origin in idle:
        yield warn(f"{origin}: it has no effect, as {reasons[name]}.", "Leave it out.")
    if not idle:
        where = given.file or "no file, defaults and environment"
        yield fine(f"The settings ({where}) are valid, and all have an effect.")
