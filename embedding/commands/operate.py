"""`yeoron up`, `down`, `status`, `doctor`, `rotate`: the platform on one machine."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.table import Table
from rich.text import Text

from embedding.commands.common import (
    Json,
    console,
    errors,
    keep_private,
    log_to_stderr,
    print_json,
    print_line,
    server_status,
    settings,
    settings_of,
)
from embedding.kernel.errors import ConfigError

if TYPE_CHECKING:
    from embedding.platform.doctor.diagnosis import Diagnosis


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (up, invite, down, status, rotate, doctor):
        app.command()(command)
    for service in (door, deliver, relay, mlflow):
        app.command(hidden=True)(service)


_STYLES = {"ok": "green", "warn": "yellow", "wrong": "red"}


def up(
    join: Annotated[
        Path | None,
        typer.Option(
            help="Join the platform of another host: the file that `yeoron invite` wrote there."
        ),
    ] = None,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait", help="Stay in the foreground until SIGTERM, then end every process."
        ),
    ] = False,
) -> None:
    """Start the platform on this machine, or the workers of a host that has joined one.

    Examples: `yeoron up`, then open the addresses it prints · `yeoron up --join host-b.json` ·
    `yeoron up --wait`, for containers and systemd
    """
    from embedding.kernel.processes import stop_on_signals
    from embedding.platform.addresses import addresses
    from embedding.platform.hosts import join as join_host
    from embedding.platform.hosts import joined_host, on_its_host, read_joining_file
    from embedding.platform.operate import bring_down, bring_up, require_stopped

    keep_private()
    chosen = settings()
    stop = stop_on_signals(terminal=True) if wait else None
    if join is not None:
        require_stopped(chosen)
        join_host(chosen, read_joining_file(join))
    with console.status("Starting the platform …") as line:
        bring_up(chosen, progress=lambda name: line.update(f"Started {name} …"))
    host = joined_host(chosen.paths)
    if host is None:
        shown = addresses(chosen)
    elif host.role == "server":
        shown = {"Server": on_its_host(chosen).server_location}
    else:
        shown = {"Dask scheduler": host.scheduler}
    for name, address in shown.items():
        print_line(f"{name:<16} {address}")
    if stop is not None:
        stop.wait()
        bring_down(chosen)


def invite(
    out: Annotated[Path, typer.Argument(help="New file to write.")],
    hours: Annotated[
        float, typer.Option(min=0.01, max=720, help="Hours for which the file is good.")
    ] = 1.0,
    role: Annotated[
        Literal["node", "server"],
        typer.Option(help="What that host runs: node (workers) or server (the parameter server)."),
    ] = "node",
) -> None:
    """Write a file with which another host joins this platform (`yeoron up --join FILE`).

    The file is good for one host.

    Examples: `yeoron invite host-b.json`, then copy it there and remove it here ·
    `yeoron invite server.json --role server`, where hosts.server is set
    """
    from embedding.kernel.private import ensure_secret
    from embedding.platform.hosts import invite as new_invitation

    if out.exists():
        raise ConfigError(f"{out}: is there already; the name of a new file is accepted.")
    keep_private()
    ensure_secret(out, new_invitation(settings_of(), hours, role).model_dump_json())
    print_line(f"{out}: good once, for {hours:g} h.")


def door() -> None:
    """Answer hosts that join; `yeoron up` starts it where hosts.address is set."""
    from embedding.platform.door import Door

    log_to_stderr("door", chosen=settings())
    keep_private()
    Door(settings()).serve_forever()


def deliver() -> None:
    """Bring the evidence of a joined host to the control host; `yeoron up` starts it there."""
    from embedding.kernel.processes import stop_on_signals
    from embedding.platform.delivering import EvidenceDelivery
    from embedding.platform.hosts import joined_host

    chosen = settings()
    log_to_stderr("delivery", chosen=chosen)
    keep_private()
    host = joined_host(chosen.paths)
    if host is None or not host.control:
        raise ConfigError(f"deliver: {chosen.paths.home} has not joined a control host.")
    EvidenceDelivery(chosen.paths, host).run(stop_on_signals())


def relay() -> None:
    """Show the pages of the server at hosts.server; `yeoron up` starts it where that is set."""
    from embedding.kernel.processes import stop_on_signals
    from embedding.platform.relay import relay as show

    chosen = settings()
    log_to_stderr("server-pages", chosen=chosen)
    keep_private()
    if not chosen.hosts.server:
        raise ConfigError("relay: the parameter server runs on this host (hosts.server).")
    show(chosen, stop_on_signals())


def mlflow() -> None:
    """Serve MLflow behind the platform's login; `yeoron up` starts it."""
    from embedding.platform.mlflow_app import serve

    keep_private()
    serve(settings())


def down() -> None:
    """Stop the platform: end every process that it started, and free its ports.

    Example: `yeoron down`
    """
    from embedding.platform.operate import bring_down

    with console.status("Stopping the platform …"):
        ran = bring_down(settings())
    console.print(f"Ended {ran} processes; the ports are free." if ran else "Nothing was running.")


def status(as_json: Json = False) -> None:
    """Show what runs: services, nodes, sources, and how far behind they are.

    Examples: `yeoron status` · `yeoron status --json`
    """
    from embedding.commands.status_tables import service_table, status_lines, status_tables
    from embedding.platform.notes import notes
    from embedding.platform.operate import running_supervisor
    from embedding.platform.ports import platform_behind

    chosen = settings_of()
    server = server_status(chosen)
    supervisor = running_supervisor(chosen)
    if supervisor is None:
        other = platform_behind(chosen.server.http_port)
        whose = "a server of its own" if other is None else f"the platform in {other}"
        sentence = f"yeoron: no platform runs in {chosen.paths.home}; this is of {whose}, at "
        print_line(sentence + chosen.server_status_url, "dim", to=errors)
    states = supervisor.states() if supervisor else {}
    sentences = notes(server, simulated=chosen.crawl.replay_clock_url is not None)
    if as_json:
        print_json({"services": states, "server": server, "notes": sentences})
        return
    if states:
        console.print(service_table(states))
        if "airflow-api-server" in states:
            print_line(f"Trends   {chosen.trends_url}")
            print_line(f"Airflow  {chosen.airflow_url}")
            print_line(f"MLflow   {chosen.mlflow_url}")
            print_line(f"Login    in {chosen.paths.airflow / 'passwords.json'}")
    for shown in status_tables(server, console.width):
        console.print(shown)
    for line in status_lines(server):
        print_line(line)
    for sentence in sentences:
        print_line(f"· {sentence}")


def rotate(as_json: Json = False) -> None:
    """Replace the tokens and certificates of the platform while it runs.

    Nodes, server and Dask start again with the new ones. Pages, Airflow and MLflow stay up.
    Nodes pause for some seconds, and nothing is lost.

    Example: `yeoron rotate`
    """
    from embedding.platform.rotation import rotate as replace

    begun = replace(settings_of(), (lambda _: None) if as_json else print_line)
    if as_json:
        print_json({"begun_again": list(begun)})
    elif not begun:
        print_line("No platform runs; services read them when they start.")


def doctor(as_json: Json = False) -> None:
    """Check the machine, the settings and the stores, and say what to do about each fault.

    While a demo runs, its home is checked. No service is started. The exit code is 1 if
    something is wrong.

    Examples: `yeoron doctor` · `yeoron doctor --json`
    """
    from embedding.platform.doctor.examining import examine

    # Settings that cannot be read are themselves what it has to tell.
    with suppress(ConfigError):
        settings_of()
    diagnoses = examine()
    if as_json:
        print_json([diagnosis.to_dict() for diagnosis in diagnoses])
    else:
        console.print(_table(diagnoses))
    raise typer.Exit(1 if any(diagnosis.state == "wrong" for diagnosis in diagnoses) else 0)


def _table(diagnoses: Sequence[Diagnosis]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    for diagnosis in diagnoses:
        sentences = Text(diagnosis.found, overflow="fold")
        if diagnosis.advice:
            sentences.append(f"\n→ {diagnosis.advice}", style=_STYLES[diagnosis.state])
        table.add_row(
            Text(diagnosis.state, style=_STYLES[diagnosis.state]), Text(diagnosis.check), sentences
        )
    return table
