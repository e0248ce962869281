"""`yeoron sources list|check|discover` and `yeoron crawl`: what is read, before it is trained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from embedding.commands.common import (
    Json,
    console,
    duration,
    errors,
    print_json,
    print_line,
    server_status,
    settings_of,
)
from embedding.commands.reasons import REASONS
from embedding.crawl.origins import doubtful
from embedding.kernel.errors import ConfigError, UnavailableError
from embedding.platform.notes import texts_left_out

if TYPE_CHECKING:
    from embedding.discovery.searching import Discovery
    from embedding.platform.checking import SourceCheck
    from embedding.settings import Settings
    from embedding.sources.config import SourceConfig


_FAULTS_SHOWN = 4
LINE_SECONDS = 10.0
"""Between two lines of what was read so far, where there is no terminal."""


def crawl_table(report: dict[str, Any]) -> Group:
    """The figures by source and in all; faults by reason, the most frequent first."""
    table = Table("source", box=SIMPLE_HEAD)
    for name in ("docs", "tokens", "pages/min", "lag", "waiting", "changes/h", "next"):
        table.add_column(name, justify="right")
    # Below the table, for a terminal of 80 columns has no room for them in it.
    troubles = []
    for name, row in sorted(report["sources"].items()):
        table.add_row(
            name,
            f"{row['documents']:,}",
            f"{row['tokens']:,}",
            f"{row['pages_per_minute']:,.0f}",
            _seconds(row["lag_p50_s"]),
            f"{row['pending']:,}",
            *_poll(row.get("poll")),
        )
        if row["errors"] or row.get("alarm") or doubtful(row["dated"]):
            troubles.append(Text(f"{name}: ") + _troubles(row))
    if left_out := texts_left_out(report["text"]):
        troubles.append(Text(left_out, style="yellow"))
    return Group(table, *troubles, Text(_summary(report)))


def _summary(report: dict[str, Any]) -> str:
    masked = report["text"].get("masked", {})
    hidden = ", ".join(f"{n:,} {kind}" for kind, n in sorted(masked.items())) or "nothing"
    return (
        f"{report['documents']:,} documents, {report['tokens']:,} tokens in "
        f"{report['seconds']:.0f} s ({report['documents_per_minute']:,.0f} documents/min, "
        f"{report['tokens_per_second']:,.0f} tokens/s); masked: {hidden}"
    )


def _troubles(row: dict[str, Any]) -> Text:
    counted = Counter(row["errors"] | doubtful(row["dated"])).most_common()
    parts = [f"{n:,} {reason}" for reason, n in counted[:_FAULTS_SHOWN]]
    if len(counted) > _FAULTS_SHOWN:
        parts.append(f"{len(counted) - _FAULTS_SHOWN} more kinds")
    shown = Text(", ".join(parts), style="yellow" if parts else "")
    alarm = row.get("alarm")
    if alarm:
        shown = Text(f"{alarm['event']} ({alarm['sentence']}) ", style="bold red") + shown
    return shown


def _poll(poll: dict[str, Any] | None) -> tuple[str, str]:
    if poll is None:
        return "–", "–"
    coming = poll["next_poll_s"]
    rate = f"{poll['changes_per_hour']:,.3g}" if poll["polls"] else "–"
    return rate, "now" if coming is None else _seconds(coming)


def _seconds(value: float | None) -> str:
    if value is None:
        return "–"
    if value < 120:
        return f"{value:.1f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.0f} h"


class CrawlView:
    """The table on a terminal; elsewhere a line now and then."""

    def __init__(self) -> None:
        self._next_line = LINE_SECONDS
        # Libraries and the morpheme analyser take seconds to load.
        starting = Text("Starting …")
        self._live = Live(starting, console=errors, transient=True, refresh_per_second=4)

    def __enter__(self) -> CrawlView:
        if errors.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, report: dict[str, Any]) -> None:
        if errors.is_terminal:
            self._live.update(crawl_table(report))
        elif report["seconds"] >= self._next_line:
            self._next_line = report["seconds"] + LINE_SECONDS
            print_line(f"yeoron: {_summary(report)}", to=errors)


_NAMED = 8
"""Sources that a line names."""

File = Annotated[Path | None, typer.Argument(help="sources.toml (default: paths.sources).")]


def check_table(checks: Sequence[SourceCheck]) -> Table:
    """A row for each source: robots, listing, first text, or what is wrong."""
    # A sentence that loses half of an address helps nobody.
    first = Column("first text", overflow="fold")
    table = Table("source", "robots.txt", "lists", first, "masked", show_lines=True)
    for look in checks:
        table.add_row(
            Text(f"{look.name}\n{look.kind}", style="" if look.ok else "red"),
            Text(_robots(look)),
            f"{look.listed:,}",
            _first(look),
            Text(_masked(look) or "–"),
        )
    return table


def _masked(look: SourceCheck) -> str:
    return ", ".join(f"{n} {kind}" for kind, n in sorted(look.masked.items()))


def _robots(look: SourceCheck) -> str:
    if not look.robots:
        return "–"
    delay = f"\n{look.crawl_delay:g} s apart" if look.crawl_delay else ""
    return f"{look.robots}{delay}"


def _first(look: SourceCheck) -> Text:
    if look.fault:
        return Text(f"{look.fault}: {look.sentence}", style="red")
    when = look.published_at or "no time"
    why = "".join(f"\n{reason}" for reason in look.reasons)
    return Text(f"{look.title or 'no title'}\n{when}, {look.characters:,} characters{why}")


def page_table(look: SourceCheck) -> Table:
    """What would be read of one page."""
    date = f"{look.published_at} ({look.dated_by})" if look.published_at else "unknown"
    rows = {
        "address": look.address or look.url,
        "key": look.key,
        "source": look.name,
        "robots.txt": _robots(look),
        "title": look.title,
        "date": date,
        "author": look.author or "",
        "length": f"{look.characters:,} characters",
        "language": look.language,
        "masked": _masked(look),
        "reasons": "\n".join(f"{name}: {REASONS.get(name, '')}" for name in look.reasons),
    }
    table = Table(box=SIMPLE_HEAD, show_header=False)
    for name, value in rows.items():
        table.add_row(name, Text(value or "–", overflow="fold"))
    return table


def register(app: typer.Typer) -> None:
    """Add these commands."""
    group = typer.Typer(
        help="The sources: list them, check them, find new ones.", no_args_is_help=True
    )
    group.command("list")(list_sources)
    for command in (check, unblock, discover):
        group.command()(command)
    app.add_typer(group, name="sources")
    app.command()(crawl)


def list_sources(file: File = None, as_json: Json = False) -> None:
    """List the sources of a file, and which node of the pool reads which at the moment.

    Example: `yeoron sources list infra/sources.example.toml`
    """
    from embedding.cluster import blocked_sources, pool_leases
    from embedding.commands.status_tables import WIDE
    from embedding.platform.notes import counted
    from embedding.sources.config import load_sources

    chosen = settings_of()
    listed = file or chosen.paths.sources
    sources = load_sources(listed)
    if file is None:
        print_line(f"yeoron: the sources of {listed}.", "dim", to=errors)
    leased, blocked = pool_leases(chosen)["sources"], blocked_sources(chosen)
    owner = {name: lease["held_by"] for name, lease in leased.items()}
    owner |= dict.fromkeys(blocked, "blocked")
    faults: dict[str, dict[str, int]] = {}
    with suppress(UnavailableError):
        faults = server_status(chosen).get("faults", {})
    if as_json:
        more = {s.name: {"node": owner.get(s.name), "faults": faults.get(s.name)} for s in sources}
        print_json([{**s.model_dump(mode="json"), **more[s.name]} for s in sources])
        return
    table = Table("source", "kind", "group", "every", "node", Column("address", overflow="fold"))
    for source in sources:
        table.add_row(
            source.name,
            source.kind,
            source.group,
            f"{source.every:g} s",
            owner.get(source.name) or "–",
            _address(source, whole=console.width >= WIDE),
        )
    console.print(table)
    for name, block in blocked.items():
        print_line(f"blocked: {name}: {block.reason}")
    for source in sources:
        if counts := counted(faults.get(source.name, {})):
            print_line(f"{source.name}: {counts}")


def _address(source: SourceConfig, *, whole: bool) -> str:
    """Where a source is, from the end backwards: what tells sources of one host apart is there."""
    if not source.url:
        return str(source.path or "")
    host, slash, rest = source.url.partition("://")[2].partition("/")
    return f"{host}{slash}{rest}" if whole or not rest else f"…/{rest}"


def unblock(source: Annotated[str, typer.Argument(help="Name of a blocked source.")]) -> None:
    """Read a source again that `yeoron rollback` blocked.

    Example: `yeoron sources unblock board`
    """
    from embedding.crawl.rewinding import unblock as free
    from embedding.kernel.errors import InputError

    if not free(settings_of().database_address("frontier"), source):
        raise InputError(f"source {source!r}: it is not blocked.")
    print_line(f"{source}: read again once the pool is attached (opinion_stream).")


def check(
    file: Annotated[
        str | None,
        typer.Argument(
            help="sources.toml (default: paths.sources), or the address of one page.",
            metavar="[FILE|URL]",
        ),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Name of a source to check; may be repeated.")
    ] = None,
    seconds: Annotated[
        float,
        typer.Option("--for", help="Most time for each source.", parser=duration, metavar="TIME"),
    ] = 60.0,
    as_json: Json = False,
) -> None:
    """Ask each source once: does it answer, what does robots.txt allow, what does it bring?

    Shows title, time and length of one text and what would be masked in it, never the text; of one
    page all that would be read. Ends with 1 when a source yields nothing.

    Examples: `yeoron sources check sources.toml` · `yeoron sources check https://site.example/1` ·
    `yeoron sources check infra/sources.example.toml --only hankyoreh --json`
    """
    page = file if file and file.startswith(("http://", "https://")) else None
    with console.status("Asking …"):
        from embedding.platform.checking import check_page, check_sources, contact

        chosen = settings_of()
        if page is not None:
            checks = [check_page(chosen, page, seconds=seconds)]
        else:
            path = None if file is None else Path(file)
            checks = check_sources(chosen, path, only or (), seconds=seconds)
    if as_json:
        print_json([look.to_dict() for look in checks])
    else:
        console.print(check_table(checks) if page is None else page_table(checks[0]))
        if not contact(chosen.crawl.user_agent):
            console.print("Set crawl.user_agent to an address or page by which you can be reached.")
    if not all(look.ok for look in checks):
        raise typer.Exit(1)


def crawled(file: Path | None, chosen: Settings) -> tuple[SourceConfig, ...]:
    """The sources that a crawl reads; ConfigError for the example list when it was not named."""
    from embedding.settings import PathsConfig
    from embedding.sources.config import load_sources

    example = PathsConfig().sources
    if file is None and chosen.paths.sources == example:
        raise ConfigError(
            f"no list of sources is given, and {example} names sites of others; name it to read "
            f"them (`yeoron crawl {example}`), or your own file (paths.sources)."
        )
    return load_sources(file or chosen.paths.sources)


def crawl(
    file: File = None,
    seconds: Annotated[
        float, typer.Option("--for", help="How long to crawl.", parser=duration, metavar="TIME")
    ] = 60.0,
    documents: Annotated[
        int | None,
        typer.Option(help="End once at least so many have come; batches count whole.", min=1),
    ] = None,
    as_json: Json = False,
) -> None:
    """Try sources: crawl and count what they bring. Nothing is learnt, and no text is kept.

    Ctrl-C ends it early and shows the figures so far.

    Examples: `yeoron crawl sources.toml --for 60s` · `yeoron crawl --for 10m --json` ·
    `yeoron crawl --documents 1000`
    """
    chosen = settings_of()
    sources = crawled(file, chosen)
    named = ", ".join(source.name for source in sources[:_NAMED])
    more = f" and {len(sources) - _NAMED} more" if len(sources) > _NAMED else ""
    how_many = "1 source" if len(sources) == 1 else f"{len(sources)} sources"
    print_line(
        f"yeoron: reading {how_many} of {file or chosen.paths.sources} for {seconds:g} s"
        f"{'' if documents is None else f', or until at least {documents:,} documents have come'}"
        f": {named}{more}.",
        to=errors,
    )
    with CrawlView() as view:
        from embedding.platform.dryrun import dry_run  # slow to import

        report = dry_run(chosen, file, seconds, documents=documents, watch=view.show)
    if as_json:
        print_line(f"yeoron: {_summary(report)}", to=errors)
        print_json(report)
        return
    console.print(crawl_table(report))


def discover(
    seeds: Annotated[
        list[str] | None,
        typer.Argument(help="Addresses to start from (default: discover.seeds, else your sites)."),
    ] = None,
    domain: Annotated[
        list[str] | None, typer.Option(help="Further domain that may be looked at; repeatable.")
    ] = None,
    requests: Annotated[
        int | None, typer.Option(help="Most requests (default: discover.requests).", min=1)
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--sources", help="sources.toml (default: paths.sources).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Search for sources and rank them by new tokens a request and by difference of their words.

    Nothing is added: the table explains each proposal, and the DAG discover_sources lets a person
    approve them. Only addresses, titles and times are shown; no text is kept.

    Examples: `yeoron sources discover https://news.example.kr` ·
    `yeoron sources discover https://a.kr --domain b.kr --requests 100 --json`
    """
    from embedding.discovery.proposals import discover as search

    chosen = settings_of()
    changes: dict[str, object] = {}
    if domain:
        changes["domains"] = (*chosen.discover.domains, *domain)
    if requests is not None:
        changes["requests"] = requests
    config = chosen.discover.model_copy(update=changes)
    with console.status("Searching …"):
        discovery = search(chosen, seeds or (), file=file, config=config)
    if as_json:
        print_json(discovery.to_dict())
        return
    show(discovery)


def show(discovery: Discovery) -> None:
    """The proposals as a table, and why others are none."""
    # Nobody can approve half of an address.
    source = Column("source", overflow="fold")
    table = Table(source, "kind", "tokens/request", "why", "for example", title="Proposals")
    for candidate in discovery.candidates:
        example = candidate.titles[0][0] if candidate.titles else ""
        gain = f"{candidate.tokens_per_request:,.0f}"
        table.add_row(
            f"{candidate.name}\n{candidate.url}", candidate.kind, gain, candidate.why, example[:40]
        )
    console.print(table if discovery.candidates else "Nothing is proposed.")
    for url, why in sorted(discovery.dropped.items()):
        print_line(f"· {url}: {why}")
    refused = ", ".join(f"{n} {reason}" for reason, n in sorted(discovery.refused.items()))
    console.print(
        f"{discovery.pages} pages looked at, {discovery.requests} requests"
        + (f"; failed: {refused}" if refused else "")
    )
