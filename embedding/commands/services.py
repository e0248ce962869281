"""`yeoron serve`, `node`, `web`: one service each, in the foreground."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from embedding.commands.common import (
    SYNC_SETTING,
    errors,
    keep_private,
    log_to_stderr,
    print_line,
    settings,
    settings_of,
    sync_settings,
)
from embedding.commands.option_groups import by_section, given_options, settings_command
from embedding.kernel.config import validate
from embedding.kernel.errors import ConfigError
from embedding.kernel.ports import address_of, listen_on

if TYPE_CHECKING:
    from embedding.server.service import ParameterServer


_ACCEPTED = "HOST:PORT, :PORT, PORT or HOST is accepted, an IPv6 address as [ADDRESS]:PORT"


def parse_listen(text: str) -> dict[str, object]:
    """`host` and `port` of HOST:PORT, those that are given; ConfigError for anything else."""
    given = text.strip()
    behind = given.rpartition("]")[2] if "]" in given else ""
    try:
        parts = urlsplit(f"//:{given}" if given.isdigit() else f"//{given}")
        address = {"host": parts.hostname, "port": parts.port}
    except ValueError:
        address = {}
    named: dict[str, object] = {name: value for name, value in address.items() if value is not None}
    if not named or (behind and not behind.startswith(":")):
        raise ConfigError(f"--listen {text!r}: {_ACCEPTED}; ports are 0 to 65535.")
    return named


SERVER_OPTIONS = {
    "device": "server.device",
    "shards": "server.shards",
    "split": "server.split",
    "leader": "server.group.leader",
    "group": "server.group.name",
    "exchange_every": "server.group.every_s",
    "token_file": "server.token_file",
    "tls_cert": "server.tls_cert",
    "tls_key": "server.tls_key",
    "tls_client_ca": "server.tls_client_ca",
    "http_port": "server.http_port",
    "policy": "sync.policy",
}
PAGE_OPTIONS = {name: f"web.{name}" for name in ("host", "port", "tls_cert", "tls_key")}
_SETTINGS = "embedding.settings:Settings"


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command(cls=settings_command(_SETTINGS, SERVER_OPTIONS))(serve)
    app.command()(node)
    app.command(cls=settings_command(_SETTINGS, PAGE_OPTIONS))(web)


def serve(
    context: typer.Context,
    listen: Annotated[
        str | None, typer.Option(help="HOST:PORT; beyond loopback a token and TLS are needed.")
    ] = None,
    sync_setting: Annotated[list[str] | None, typer.Option(help=SYNC_SETTING)] = None,
) -> None:
    """Run the parameter server until SIGTERM. It writes a checkpoint before it ends.

    Examples: `yeoron serve` · `yeoron serve --device cuda --policy asp` ·
    `yeoron serve --shards 4 --split columns` ·
    `yeoron serve --policy easgd --sync-setting tau=8` ·
    `yeoron serve --listen :8825 --leader grpc://127.0.0.1:8815 --group b` ·
    `yeoron serve --listen 0.0.0.0:8815 --token-file token --tls-cert cert.pem --tls-key key.pem`
    """
    from embedding.platform.serving import serve as run
    from embedding.server.config import ServerConfig, SyncConfig

    log_to_stderr("server", chosen=settings())
    keep_private()
    chosen = settings()
    more, own = by_section(given_options(context), SERVER_OPTIONS), chosen.server.model_dump()
    address = {} if listen is None else parse_listen(listen)
    server = {**own, **more.get("server", {}), **address}
    if group := more.get("server.group"):
        server["group"] = {**own.get("group", {}), **group}
    rules = sync_settings(sync_setting, "--policy") | more.get("sync", {})
    run(
        chosen,
        validate(ServerConfig, server, "yeoron serve"),
        validate(SyncConfig, {**chosen.sync.model_dump(), **rules}, "yeoron serve"),
        _tell,
    )


def _tell(running: ParameterServer) -> None:
    state = running.state
    where = state.rows.where
    if running.link is not None:
        group = running.link.describe()
        where = f"{where}, group {group['group']} that follows {group['leader']}"
    print_line(
        f"yeoron: parameter server ready at {running.location}, status at "
        f"{running.http_url}/status, on {where}, policy {state.machine.config.policy}",
        to=errors,
    )


def node(name: Annotated[str, typer.Option(help="Name of the node in the pool.")]) -> None:
    """Run one node by hand, without Dask, to see what it does.

    Example: `yeoron node --name yeoron-node-0`
    """
    from embedding.cluster import node_specs
    from embedding.kernel.private import private_folder
    from embedding.kernel.processes import stop_on_signals
    from embedding.worker.process.node import run_node

    log_to_stderr("node", node=name, chosen=settings())
    keep_private()
    chosen = settings()
    private_folder(chosen.paths.home)
    specs = {spec.name: spec for spec in node_specs(chosen)}
    if name not in specs:
        raise ConfigError(f"--name {name}: no such node; {', '.join(specs)} are accepted.")
    chosen.paths.frontier.mkdir(parents=True, exist_ok=True, mode=0o700)
    stop = stop_on_signals(terminal=True)
    run_node(specs[name], stop.is_set)


def web(context: typer.Context) -> None:
    """Serve the trends page without Airflow. It prints the address, and a token to log in with.

    Examples: `yeoron web --port 8090` ·
    `yeoron web --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem`
    """
    import uvicorn

    from embedding.kernel.connections import BoundedProtocol
    from embedding.server.flight.credentials import read_pair
    from embedding.web.app import create_app
    from embedding.web.config import WebConfig
    from embedding.web.login import ensure_token

    keep_private()
    chosen, more = settings_of(), by_section(given_options(context), PAGE_OPTIONS)
    page = validate(WebConfig, {**dict(chosen.page), **more.get("web", {})}, "yeoron web")
    if page.tls_cert is not None and page.tls_key is not None:
        for note in read_pair(page.tls_cert, page.tls_key, page.host)[1]:
            print_line(note, to=errors)
    scheme = "http" if page.tls_cert is None else "https"
    with listen_on(page.host, page.port) as listener:
        token = ensure_token(page.token_file)
        print_line(f"Trends page at {scheme}://{address_of(listener)}/ — token: {token}")
        served = uvicorn.Config(
            create_app(page, crawl=chosen.crawl, channels=chosen.notify.channels),
            ssl_certfile=page.tls_cert,
            ssl_keyfile=page.tls_key,
            http=BoundedProtocol,
            ws="none",
            log_level="warning",
        )
        uvicorn.Server(served).run(sockets=[listener])
