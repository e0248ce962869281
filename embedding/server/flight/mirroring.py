"""Pulls that bring changes, on the stream of one node (`exchange/mirror.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from embedding.exchange.codec import packed_header
from embedding.exchange.compression.base import unpacked
from embedding.exchange.compression.halves import widen
from embedding.exchange.mirror import Mirror, Wanted
from embedding.exchange.protocol import Push
from embedding.exchange.wire import Array
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import FloatArray, HalfArray, IntArray, Table

Answer = tuple[dict[str, Any], dict[str, Array]]
"""Header and parts of an answer."""


MOST_MEMORY = 256 * 1024 * 1024
"""Bytes that what one node has of the rows may take here."""


class StreamMirror:
    """What the node at the other end has; the stream's thread alone uses it.

    seed  of the tables' first vectors
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed % 2**32
        self._mirror: Mirror | None = None
        self._pushed = 0

    def changes(
        self,
        wanted: Wanted,
        asked: Mapping[Table, IntArray],
        rows: Mapping[Table, FloatArray | HalfArray],
        sequence: int,
    ) -> Answer | None:
        """The answer to a pull; None: whole rows are to be sent, from which the node begins again.

        That is so when the node has had other pulls than the server knows of, and when a push of
        it is in what it has but not yet in these rows, where `sequence` is the last one.
        """
        if not wanted.pulls:
            self._mirror, self._pushed = Mirror(min(wanted.memory, MOST_MEMORY), self._seed), 0
        mirror = self._mirror
        if mirror is None or mirror.pulls != wanted.pulls or sequence < self._pushed:
            self._mirror = None
            return None
        for ids in asked.values():
            if bool((np.diff(ids) <= 0).any()):
                raise RefusedError("pull: the ids of a pull of changes must increase.")
        whole = {table: widen(each) for table, each in rows.items()}
        packed = mirror.differences(asked, whole, wanted)
        header = {"changes": mirror.memory, "start": self._seed, "packed": packed_header(packed)}
        return header, {f"{each.table}.packed": each.data for each in packed}

    def learnt(self, push: Push) -> None:
        """A push was taken; sent again it changes nothing."""
        if self._mirror is not None and push.keeps and push.sequence > self._pushed:
            self._mirror.learnt(unpacked(push))
            self._pushed = push.sequence
