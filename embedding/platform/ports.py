"""Are the ports free? A taken port is named together with the setting that moves it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import psutil

from embedding.kernel.errors import PlatformError
from embedding.kernel.ports import is_free
from embedding.platform.processes import MARK
from embedding.settings import Settings


def port_settings(settings: Settings, *, simweb: bool = False) -> dict[str, int]:
    """Every port the platform listens on, by the name of its setting."""
    ports = {f"ports.{name}": port for name, port in settings.ports.model_dump().items()}
    if not simweb:
        ports.pop("ports.simweb")
    if not settings.hosts.server:
        ports["server.port"] = settings.server.port
    ports["server.http_port"] = settings.server.http_port
    if settings.hosts.address:
        ports["hosts.port"] = settings.hosts.port
    return ports


def holder(port: int) -> str:
    """Who listens on `port`: `name (pid N)`, or `another process` where that cannot be seen."""
    with suppress(psutil.AccessDenied, psutil.NoSuchProcess):
        if process := _listener(port):
            return f"{process.name()} (pid {process.pid})"
    return "another process"


def platform_behind(port: int) -> str | None:
    """Home of the platform whose process listens on `port`; None where that cannot be seen."""
    with suppress(psutil.AccessDenied, psutil.NoSuchProcess, OSError):
        if process := _listener(port):
            return process.environ().get(MARK)
    return None


def _listener(port: int) -> psutil.Process | None:
    for connection in psutil.net_connections(kind="tcp"):
        listens = connection.status == psutil.CONN_LISTEN
        if listens and connection.laddr and connection.laddr.port == port and connection.pid:
            return psutil.Process(connection.pid)
    return None


def require_free(ports: Mapping[str, int]) -> None:
    """Raise PlatformError for the first taken port, and for two settings that share one."""
    seen: dict[int, str] = {}
    for name, port in ports.items():
        if port in seen:
            raise PlatformError(
                f"port {port} is set twice: {seen[port]} and {name}; give each its own in "
                f"yeoron.toml or by {variable(name)}."
            )
        seen[port] = name
        if not is_free(port):
            raise PlatformError(
                f"port {port} ({name}) is taken by {holder(port)}; end that process or set "
                f"another port: {name} in yeoron.toml, or {variable(name)} in the environment."
            )


def variable(name: str) -> str:
    """The environment variable of a dotted setting."""
    return "YEORON_" + name.upper().replace(".", "__")
