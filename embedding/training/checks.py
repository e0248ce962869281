"""What is refused before a training starts, each in one sentence."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import psutil

from embedding.exchange.placement import PLACEMENTS
from embedding.exchange.relay import RELAYS
from embedding.kernel.errors import ConfigError, InputError
from embedding.models.traits import COUNT_MODELS
from embedding.server.grouping import GROUPS
from embedding.server.policies.traits import POLICIES
from embedding.text.tokenizers import AUTO_TOKENIZER, TOKENIZERS, make_tokenizer
from embedding.training.request import TrainRequest
from embedding.training.survey import CorpusSurvey, surveyed
from embedding.worker.corpus.corpus import NOT_UTF8, CorpusStretch, dated_line, stretches
from embedding.worker.learning.training import in_place
from embedding.worker.spec import CorpusShare

NODES_A_CORE = 4
"""More nodes than this on a core only wait for each other."""
INITIAL_ROWS = 1024
"""Rows that the tables have before any word is known."""
TRIED_LINES = 100
"""A JSONL file with no dated text in so many lines is not a dated corpus."""
_MOST_WRONG = 0.1
"""Share of the first lines of a corpus that may be no UTF-8 text: with more of them the file is of
another encoding."""
CGROUP = Path("/sys/fs/cgroup")


def refuse(where: str, *cases: tuple[bool, str, str, str]) -> None:
    """ConfigError for the first case that is so: (it is so, what does not go with it, why, what is
    accepted)."""
    for is_so, what, why, accepted in cases:
        if is_so:
            raise ConfigError(f"{where} with {what}: {why}; {accepted} is accepted.")


def check_options(request: TrainRequest) -> None:
    """Raises ConfigError for options that do not go together or cannot work here."""
    if request.model.model in COUNT_MODELS:
        COUNT_MODELS.get(request.model.model).check_request(request)
    most = NODES_A_CORE * (os.cpu_count() or 1)
    if request.nodes > most:
        raise ConfigError(
            f"nodes {request.nodes}: this machine has {os.cpu_count()} cores and each node is two "
            f"processes; at most {most} are accepted."
        )
    if (rows := PLACEMENTS.first()) is not None:
        rows.check_request(request)
    if POLICIES.traits(request.sync.policy).needs_shared_memory:
        training = in_place()
        if request.server.device == "cuda":
            training.check_model(request.model)
    if request.dated is not None:
        _check_dated(request)
    tokenizer = request.text.tokenizer
    if tokenizer != AUTO_TOKENIZER and not TOKENIZERS.traits(tokenizer).always_runs:
        make_tokenizer(request.text)
    if (groups := GROUPS.first()) is not None:
        groups.check_request(request)
    if (check := request.topology.traits.check_request) is not None:
        check(request)
    if (relays := RELAYS.first()) is not None:
        relays.check_request(request)


def _check_dated(request: TrainRequest) -> None:
    if request.epochs > 1:
        raise ConfigError(
            f"epochs {request.epochs}: a dated corpus is learnt in time order in one pass; "
            "1 is accepted."
        )
    if request.vocabulary == "counted":
        raise ConfigError(
            "vocabulary counted: a dated corpus is learnt in one pass, so that no window knows "
            "the words of later ones; growing is accepted."
        )
    if not request.lines_are_dated:
        raise ConfigError(
            f"{request.corpus}: plain text has no dates; a .jsonl file (or .jsonl.xz) with date "
            "and text on each line is accepted."
        )


def check_corpus(request: TrainRequest) -> CorpusSurvey:
    """What nodes need to know of a dated corpus as a whole, all of which is read; else nothing.

    Raises InputError for a file that cannot be read or holds no text of the kind wanted.
    """
    path = request.corpus
    if path.is_dir():
        raise InputError(f"{path}: a folder; a text or JSONL file (plain or .xz) is expected.")
    wrong: list[int] = []
    try:
        share = CorpusShare(path=str(path))
        first = next(stretches(share, lambda number, _: wrong.append(number)), None)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}.") from error
    if first is not None and len(wrong) > _MOST_WRONG * first.end:
        raise InputError(
            f"{path}: line {wrong[0] + 1} is {NOT_UTF8}, and {len(wrong):,} of the first "
            f"{first.end:,} are not; convert the file to UTF-8."
        )
    # What is blank so far may go on with words.
    if first is not None and first.text.strip():
        _check_text(request, first)
    return CorpusSurvey() if request.calendar is None else surveyed(request, request.calendar)


def _check_text(request: TrainRequest, first: CorpusStretch) -> None:
    """Whether a corpus begins as text of the kind wanted."""
    path = request.corpus
    if "\0" in first.text:
        raise InputError(f"{path}: binary data; UTF-8 text, one sentence a line, is expected.")
    if request.lines_are_dated:
        _check_has_dates(path, first)
    elif _is_dated(first.text.strip().split("\n", 1)[0]):
        raise InputError(
            f"{path}: its first line is JSON with a date and a text, and a file of this name is "
            "read as plain text; name it with .jsonl at the end (or .jsonl.xz)."
        )


def _check_has_dates(path: Path, first: CorpusStretch) -> None:
    numbered = enumerate(first.text.split("\n"), first.first + 1)
    lines = [(number, line) for number, line in numbered if line.strip()][:TRIED_LINES]
    why = ""
    for number, line in lines:
        try:
            dated_line(number - 1, line, 0.0)
            return
        except InputError as error:
            why = why or f"line {number}: {error}"
    raise InputError(
        f'{path}: no line among the first {len(lines)} has a date and a text, {{"date": '
        f'"2020-02-03", "text": "…"}}; {why}'
    )


def _is_dated(line: str) -> bool:
    try:
        dated_line(0, line, 0.0)
    except InputError:
        return False
    return True


def check_memory(request: TrainRequest, words: int) -> None:
    """Raises ConfigError when the tables of `words` words (0: not counted yet) cannot be held.

    Counted are the tables, their copy while a snapshot is written, and what a node holds of a
    block (at most as many noise words as tokens): its rows, and the same rows as they were; of
    fastText's n-gram rows a block may need all.
    """
    block = min(words, 2 * request.node_config.block_tokens)
    grams = request.model.gram_rows
    rows = 4 * words + 2 * grams + request.nodes * (4 * block + 3 * grams)
    if request.topology.traits.replicas:
        # Each node's replica and the sums; one remembers what it has told the server.
        rows += request.nodes * (4 * words + 2 * grams) + 2 * words + grams
    needed, free = 4 * rows * request.model.width, free_memory()
    tables = [(words, "words"), (grams, "n-gram rows (model.buckets)")]
    what = " and ".join(f"{n:,} {kind}" for n, kind in tables if n)
    if needed > free:
        raise ConfigError(
            f"dim {request.model.dim}: with {what} the tables take "
            f"{needed / 2**30:.1f} GiB and {free / 2**30:.1f} GiB are free; choose a smaller dim, "
            "a greater min_count or fewer nodes."
        )


def free_memory() -> int:
    """Bytes that this process may still take: of the machine, or of its container."""
    free = int(psutil.virtual_memory().available)
    with suppress(OSError, ValueError):
        limit = int((CGROUP / "memory.max").read_text())
        used = int((CGROUP / "memory.current").read_text())
        free = min(free, max(limit - used, 0))
    return free
