"""New tokens and certificates for a platform that runs.

1. The nodes end. What they have learnt is with the server; the frontier knows where to go on.
2. The files in `secrets` are replaced.
3. The services that have read the old ones begin again, one after another: the server from its
   checkpoint, Dask's scheduler, the door, the workers. All others run on.
4. The nodes start, as far as there are workers: other hosts join again first.

Each step can be done twice: after a failure the same call goes on.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable

from embedding.cluster import attach_pool, stop_pool
from embedding.kernel.errors import PlatformError
from embedding.platform.hosts import ensure_authority, ensure_tokens, joined_host
from embedding.platform.operate import all_services
from embedding.platform.supervisor import Supervisor
from embedding.settings import Settings

_HOLDERS = ("server", "dask-scheduler", "door", "dask-worker-")
"""How the names of services begin that read these files when they start."""
_JOIN_AGAIN = (
    "Hosts that have joined are shut out until they join again: `yeoron invite FILE` here, then "
    "`yeoron down` and `yeoron up --join FILE` there."
)


def rotate(settings: Settings, tell: Callable[[str], None]) -> tuple[str, ...]:
    """Replace them; `tell` hears a sentence for each step. The services that began again.

    Raises PlatformError on a host that has joined another, and where a service does not come back.
    """
    if (host := joined_host(settings.paths)) is not None:
        raise PlatformError(
            f"rotate: this host has joined the one at {host.control or host.scheduler}, which "
            "makes certificates; call it there."
        )
    supervisor = Supervisor(settings.paths.home, settings.paths.logs)
    running = supervisor.states()
    ran = _end_nodes(settings, tell) if running else False
    _replace(settings)
    tell(f"New tokens and certificates are in {settings.paths.secrets}.")
    begun = [
        service
        for service in (all_services(settings) if running else ())
        if service.name in running and service.name.startswith(_HOLDERS)
    ]
    for service in begun:
        supervisor.restart(service.name)
        supervisor.wait_ready([service])
        tell(f"Begun again: {service.name}.")
    if settings.hosts.address:
        tell(_JOIN_AGAIN)
    if ran:
        try:
            tell(f"Nodes started: {', '.join(attach_pool(settings).nodes)}.")
        except PlatformError as error:
            if not settings.hosts.address:
                raise
            tell(f"Nodes start with the next run of opinion_stream: {error}")
    return tuple(service.name for service in begun)


def _end_nodes(settings: Settings, tell: Callable[[str], None]) -> bool:
    """Whether nodes ran: their files say so even where a rotation was cut off in the middle."""
    ran = any(settings.paths.nodes.glob("*"))
    try:
        ended = stop_pool(settings)
    except PlatformError:
        # The scheduler knows the certificates before: the nodes end with their workers.
        tell("Nodes end with their workers.")
        return ran
    tell(f"Nodes stopped: {', '.join(ended) or 'none ran'}.")
    return ran or bool(ended)


def _replace(settings: Settings) -> None:
    paths = settings.paths
    for old in (
        *(paths.node_token, paths.operator_token),
        *(*paths.dask_certificate, *paths.server_certificate),
    ):
        old.unlink(missing_ok=True)
    # They name the authority before.
    shutil.rmtree(paths.secrets / "invitations", ignore_errors=True)
    ensure_tokens(paths)
    ensure_authority(settings)
