"""What is checked about a message before a row changes."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from embedding.exchange.codec import check
from embedding.exchange.compression.base import unpack
from embedding.exchange.compression.halves import widen
from embedding.exchange.protocol import Push
from embedding.kernel.errors import RefusedError
from embedding.server.words.vocabulary import Vocabulary


def checked(push: Push, dim: int, most_bytes: int) -> Push:
    """The push with its rows unpacked and as float32; all that its arrays hold was looked at.

    most_bytes  memory that the packed rows of a table may take when unpacked

    RefusedError says what is wrong with it.
    """
    packed = tuple(unpack(each, dim=dim, most_bytes=most_bytes) for each in push.packed)
    deltas = tuple(
        replace(delta, values=widen(delta.values)) if delta.values.dtype == np.float16 else delta
        for delta in push.deltas + packed
    )
    rare = push.rare
    if rare is not None:
        weights, contexts = rare.weights.astype(np.float32), rare.contexts.astype(np.int64)
        rare = replace(rare, contexts=contexts, weights=weights)
    unpacked = replace(push, deltas=deltas, packed=(), rare=rare)
    check(unpacked, f"push {push.sequence} of node {push.node}", dim=dim)
    return unpacked


def check_ids(push: Push, vocabulary: Vocabulary) -> None:
    """RefusedError when a push counts, or tells of, a word by an id that was never given."""
    for part in push.usage:
        vocabulary.slots(part.ids, "push")
    for shift in push.shifts:
        vocabulary.slots(shift.ids, "push")
        vocabulary.slots(shift.contexts, "push")
    vocabulary.slots(push.counts.ids[push.counts.ids >= 0], "push")
    if push.rare is not None:
        vocabulary.slots(push.rare.ids, "push")
        vocabulary.slots(push.rare.contexts.astype(np.int64), "push")


MAX_NODES = 10_000
MAX_SOURCES = 10_000
MAX_NAME = 1_000
MAX_WORD_BYTES = 16_384
MAX_REPORT_BYTES = 256 * 1024
MAX_COUNT = 2**40
"""Most occurrences of a word, tokens or pairs in one push: sums of them stay exact."""

_UNFIT = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def check_nodes(known: Collection[str], nodes: Collection[str]) -> None:
    """RefusedError for a name that cannot be shown, or one node too many beside those `known`."""
    # Without the lock: to look into a dictionary is one step, and one node more does no harm.
    fresh = [node for node in nodes if node not in known]
    for node in nodes:
        check_name("node", node)
    if fresh and len(known) + len(fresh) > MAX_NODES:
        raise RefusedError(
            f"node {fresh[0]}: {MAX_NODES} nodes are known already; use the names of these.",
            kind="limit",
        )


def check_report(node: str, report: dict[str, Any], known: Collection[str]) -> None:
    """RefusedError for a report that is too large, or names sources too many beside those known."""
    size = len(json.dumps(report))
    if size > MAX_REPORT_BYTES:
        raise RefusedError(
            f"report of node {node}: {size} bytes; at most {MAX_REPORT_BYTES} are accepted.",
            kind="size",
        )
    sources = report.get("sources")
    if isinstance(sources, dict):
        check_sources(sources, known)


def check_push(push: Push, known: Collection[str]) -> None:
    """RefusedError for names, counts or words that no node has; sources that are known."""
    counts = push.counts
    named = {g.source for g in counts.groups} | {each.source for each in push.usage}
    check_sources(named | {p.source for p in push.progress}, known)
    most = max([push.tokens, push.pairs, *(p.tokens + p.documents for p in push.progress)])
    if len(counts.counts):
        most = max(most, int(counts.counts.max()))
    if most > MAX_COUNT:
        raise RefusedError(
            f"push {push.sequence} of node {push.node}: a count of {most}; at most {MAX_COUNT} "
            "is accepted.",
            kind="limit",
        )
    if isinstance(counts.words, pa.Array):
        check_words(counts.words)


def check_words(words: pa.Array) -> None:
    """RefusedError for a text that is no word: the vocabulary would keep it."""
    if not len(words):
        return
    longest = int(np.diff(np.frombuffer(words.buffers()[1], dtype=np.int32)).max())
    if longest > MAX_WORD_BYTES:
        raise RefusedError(
            f"a word of {longest} bytes; at most {MAX_WORD_BYTES} are accepted.", kind="size"
        )


def check_sources(names: Collection[str], known: Collection[str]) -> None:
    """RefusedError for a name that cannot be shown, or too many sources beside those `known`."""
    for name in names:
        check_name("source", name)
    fresh = sum(name not in known for name in names)
    if fresh and len(known) + fresh > MAX_SOURCES:
        raise RefusedError(
            f"{fresh} new sources: {len(known)} are known already; at most {MAX_SOURCES} are "
            "accepted.",
            kind="limit",
        )


def check_name(what: str, name: str) -> None:
    """RefusedError for a name that cannot be shown."""
    if len(name) > MAX_NAME or _UNFIT.search(name):
        shown = name[:40].encode("unicode_escape").decode()
        raise RefusedError(
            f"{what} {shown}: a name of at most {MAX_NAME} characters without control characters "
            "is accepted.",
            kind="request",
        )
