"""`yeoron init`: five questions, and a sources.toml and a yeoron.toml for one's own sites."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from embedding.commands.common import errors, print_line, settings
from embedding.commands.option_groups import given_options, settings_command
from embedding.kernel.errors import ConfigError

if TYPE_CHECKING:
    from embedding.platform.beginning import Beginning
    from embedding.sources.config import SourceConfig

T = TypeVar("T")
_TRIES = 5
"""Times that a question is asked again."""
_MIXED = "mixed"


INIT_OPTIONS = {
    "tokenizer": "text.tokenizer",
    "window": "server.window",
    "timezone": "server.timezone",
    "home": "paths.home",
}
INIT_DEFAULTS = {
    "tokenizer": "as the language needs",
    "timezone": "Asia/Seoul where texts are Korean, or UTC",
}


def register(app: typer.Typer) -> None:
    """Add this command."""
    command = settings_command("embedding.settings:Settings", INIT_OPTIONS, usual=INIT_DEFAULTS)
    app.command("init", cls=command)(begin)


def begin(
    context: typer.Context,
    name: Annotated[str | None, typer.Option(help="Name of the project.")] = None,
    site: Annotated[
        list[str] | None, typer.Option(help="Address of a site or a feed; may be repeated.")
    ] = None,
    language: Annotated[
        str | None, typer.Option(help="Language of the texts: two letters such as ko, or mixed.")
    ] = None,
    contact: Annotated[
        str,
        typer.Option(
            help="Mail or page by which sites can reach you; the crawler shows it to them."
        ),
    ] = "",
) -> None:
    """Ask five questions and write sources.toml and yeoron.toml in this folder.

    Each answer is checked at once: a site must answer, robots.txt must allow it, and a feed, a
    sitemap or a list of articles must be found. Files that are there are not written over. With
    all options nothing is asked.

    Examples: `yeoron init` · `yeoron init --name news --site https://news.example.kr --language ko
    --window day --home var`
    """
    from embedding.platform import beginning

    folder, given = Path(), given_options(context)
    beginning.check_new(folder)
    name = _answer("Name of the project", name, folder.absolute().name, beginning.check_name)
    answers = beginning.Beginning(name=name, contact=contact)
    _sites(answers, site)
    answers.language = language = _answer(
        "Language of the texts (ko, en, … or mixed)",
        language,
        "ko",
        lambda text: beginning.check_language("" if text.strip() == _MIXED else text),
    )
    usual = beginning.LANGUAGE_TOKENIZERS.get(language, "script")
    answers.tokenizer = beginning.checked("text.tokenizer", given.get("tokenizer", usual))
    answers.sources = [
        source.model_copy(update={"language": language or None}) for source in answers.sources
    ]
    answers.window = _answer(
        "Compare by hour, day, week or month",
        given.get("window"),
        "day",
        lambda text: beginning.checked("server.window", text),
    )
    usual = beginning.LANGUAGE_ZONES.get(language, "UTC")
    answers.timezone = beginning.checked("server.timezone", given.get("timezone", usual))
    answers.home = _answer(
        "Folder for the data",
        str(given["home"]) if "home" in given else None,
        "var",
        lambda text: beginning.check_home(Path(text.strip())),
    )
    for path in beginning.write_beginning(folder, answers):
        print_line(f"Written: {path}")
    print_line(f"Periods begin at midnight in {answers.timezone} (server.timezone).")
    if not answers.contact:
        print_line("Set crawl.user_agent in yeoron.toml to an address by which you can be reached.")
    print_line("Next: yeoron crawl, to see what comes; then yeoron up.")


def _sites(answers: Beginning, given: list[str] | None) -> None:
    """The second question; a site that cannot be read is said, and another is asked for."""
    if given is not None:
        for url in given:
            answers.sources.append(_site(url, answers.sources))
        return
    while True:
        more = "Another site or feed (empty: no more)" if answers.sources else "A site or feed"
        url = _ask(more, "" if answers.sources else None)
        if not url.strip() and answers.sources:
            return
        try:
            answers.sources.append(_site(url, answers.sources))
        except ConfigError as error:
            print_line(f"  {error}", "red", to=errors)


def _site(url: str, others: list[SourceConfig]) -> SourceConfig:
    from embedding.platform.beginning import find_source

    with errors.status(f"Looking at {url} …"):
        source, sentence = find_source(url, settings().crawl, [other.name for other in others])
    if source.url in {other.url for other in others}:
        raise ConfigError(f"{url}: {source.url} is read already.")
    print_line(f"  {sentence}")
    return source


def _answer(question: str, given: str | None, usual: str, check: Callable[[str], T]) -> T:
    """A checked answer: the one given, or what a person says; asked again where it is wrong."""
    if given is not None:
        return check(given)
    for _ in range(_TRIES):
        try:
            return check(_ask(question, usual))
        except ConfigError as error:
            print_line(f"  {error}", "red", to=errors)
    raise ConfigError(f"{question}: no answer that can be taken; begin again with `yeoron init`.")


def _ask(question: str, usual: str | None) -> str:
    try:
        return str(typer.prompt(question, default=usual, show_default=bool(usual)))
    except typer.Abort:
        if sys.stdin.isatty():
            raise
        raise ConfigError(
            f"{question}: nobody answers; give --name, --site, --language, --window and --home."
        ) from None
