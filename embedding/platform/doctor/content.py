"""Can text be read and cut? Sources, browser, tokenizer."""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Iterator
from pathlib import Path

from embedding.crawl.chromium_process import find_chromium
from embedding.kernel.errors import FetchError
from embedding.platform.doctor.diagnosis import Diagnosis, fine, warn, wrong
from embedding.sources.config import load_sources
from embedding.sources.kinds import SOURCES
from embedding.text.config import TextConfig
from embedding.text.tokenizers import make_tokenizer

_SENTENCE = "마스크 여론이 바뀌었다."
_START_S = 30


def check_sources(file: Path, blocked: Collection[str]) -> Iterator[Diagnosis]:
    """Whether the file can be read and names something; ConfigError otherwise."""
    if not file.exists():
        yield wrong(f"There is no {file}.", "`yeoron init` writes one for your sites.")
        return
    sources = load_sources(file)
    names = [source.name for source in sources]
    if not names:
        yield wrong(f"{file} names no source.", "Add a [[source]].")
        return
    left = [name for name in names if name not in blocked]
    yield fine(f"{file} names {'1 source' if len(names) == 1 else f'{len(names)} sources'}.")
    if len(left) < len(names):
        yield warn(
            f"{len(names) - len(left)} of the sources are blocked and are not read.",
            "`yeoron sources unblock NAME` unblocks one.",
        )


def check_contact(user_agent: str, *, reached: bool) -> Iterator[Diagnosis]:
    """Whether sites can reach whoever crawls them."""
    if reached:
        yield fine(f"Sites are told who reads them: {user_agent}")
    else:
        yield warn(
            f"Sites are not told how to reach you: {user_agent}",
            "Set crawl.user_agent with your address or page.",
        )


def check_browser(file: Path, configured: Path | None) -> Iterator[Diagnosis]:
    """Whether Chromium starts, where a source needs it or one is set."""
    sources = load_sources(file) if file.exists() else ()
    rendered = [source.name for source in sources if SOURCES.traits(source.kind).browser]
    if not rendered and configured is None:
        yield fine("No source needs a browser.")
        return
    advice = "apt-get install chromium, or set crawl.browser."
    who = f"{len(rendered)} sources need it ({rendered[0]}, …)" if rendered else "it is set"
    try:
        browser = find_chromium(configured)
    except FetchError as error:
        yield wrong(str(error), advice)
        return
    if browser is None:
        yield wrong(f"There is no Chromium, and {who}.", advice)
        return
    try:
        done = subprocess.run(  # noqa: S603 - the executable that the crawler would start
            [browser, "--version"], capture_output=True, text=True, timeout=_START_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        yield wrong(f"{browser} does not start ({type(error).__name__}).", advice)
        return
    if done.returncode:
        yield wrong(f"{browser} ends with {done.returncode}.", advice)
    else:
        yield fine(f"{done.stdout.strip() or browser} starts.")


def check_tokenizer_runs(config: TextConfig) -> Iterator[Diagnosis]:
    """Whether words can be cut, with the model that it needs; ConfigError otherwise."""
    tokenizer = make_tokenizer(config)
    words = [token for sentence in tokenizer.tokenize([_SENTENCE]) for token in sentence]
    if words:
        yield fine(f"The tokenizer {tokenizer.name} cuts words.")
    else:
        yield wrong(
            f"The tokenizer {tokenizer.name} finds no word in {_SENTENCE!r}.",
            "Look at text.keep_tags and text.min_length.",
        )
