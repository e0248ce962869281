"""What a group has to tell that is larger than a message may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from grouped import DIM, counted, following, ints, moved, read
from named import QUICK

from embedding.exchange.payload import UNITS, ContextSums, HandIn
from embedding.exchange.protocol import Push
from embedding.exchange.wire import MAX_HEADER_BYTES, Message, encode, text_array
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import SourceProgress
from embedding.server.config import ServerConfig
from embedding.server.service import running_server
from embedding.server.words.usage import added_up
from waiting import until
from yeoron_lab.aggregating.aggregator import decode_together, encode_together
from yeoron_lab.groups.entry import Pieces, in_pieces, merged

pytestmark = pytest.mark.timeout(600)

LONG = "가" * 1_000_000


def test_long_offsets_of_several_nodes_are_no_part_of_the_header() -> None:
    pushes = [Push(f"n{i}", 1, 0, offset=f"{i}{LONG}") for i in range(5)]
    message = encode_together(pushes, [1] * 5)
    assert len(encode(message)[1]) < MAX_HEADER_BYTES // 1000
    found, _ = decode_together(message)
    assert [push.offset for push in found] == [push.offset for push in pushes]


@pytest.mark.parametrize("words", [[], ["봄", "여름"]])
def test_offsets_that_are_not_as_many_as_the_pushes_are_refused(words: list[str]) -> None:
    message = encode_together([Push("n0", 1, 0, offset=LONG)], [1])
    with pytest.raises(RefusedError, match="than its records say"):
        decode_together(replace(message, texts={"pushes.offset": text_array(words)}))


def test_a_message_in_pieces_is_whole_again() -> None:
    arrays = {"ids": ints(*range(1000)), "values": np.ones((100, 3), dtype=np.float32)}
    message = Message({"op": "merge", "x": "봄"}, arrays, {"words": text_array(["여름"] * 10)})
    assert list(in_pieces(message, 7, 1 << 20)) == [message]
    *first, last = in_pieces(message, 7, 500)

    def taken(end: Message, pieces: Sequence[Message] = first) -> Message:
        held = Pieces()
        assert held.whole(message) is message
        for piece in pieces:
            assert piece.arrays["u1"].nbytes <= 500
            held.add(piece, 1 << 20)
        return held.whole(end)

    found = taken(last)
    assert found.header["x"] == "봄"
    assert all(np.array_equal(found.arrays[name], arrays[name]) for name in arrays)
    assert all(found.arrays[name].flags.aligned for name in arrays)
    sizes = last.header["held"]
    for wrong in (sizes[1:], [*sizes[:-1], -1], [*sizes[:-1], 1], "x", [None] * len(sizes)):
        with pytest.raises(RefusedError):
            taken(Message({**last.header, "held": wrong}))
    with pytest.raises(RefusedError, match="bytes of entry 7 came before it"):
        taken(last, first[:-1])
    with pytest.raises(RefusedError, match="0 bytes of entry 8"):
        taken(Message({**last.header, "sequence": 8}))


def test_of_what_a_process_hands_in_the_last_word_goes_on() -> None:
    def push(
        sequence: int, value: float = 0.0, first: int | None = None, read: bool = False
    ) -> Push:
        sums = np.full((2, DIM), value, "f4")
        part = ContextSums(7, "뉴스", 1, ints(2, 5), sums, np.ones(2, "f4"))
        return Push(
            *("n1", sequence, 0),
            usage=(part,) if value else (),
            hand_ins=() if first is None else (HandIn(7, first),),
            progress=(SourceProgress("뉴스", 1, 9, 8.0, 7, ()),) if read else (),
            incarnation="a",
        )

    portions = [push(1, 1.0), push(2, 2.0, first=1), push(3, 3.0), push(4, 4.0, first=3)]
    found = merged([push(5, read=True), *portions])
    assert found.incarnation == "a"
    assert [float(one.sums[0, 0]) for one in found.usage] == [3.0, 4.0]
    assert found.hand_ins == (HandIn(7, 3),)
    more = merged([*portions, push(5, read=True)])
    assert more.hand_ins == (), "text came after it: it is to be handed in again"


def test_sums_and_places_that_no_message_holds_reach_the_leader_once(connect) -> None:
    """Also what a group begins with, when the leader names many long places."""
    small = {"min_count": 1, "max_message_bytes": 1 << 16, "half_life_tokens": None}
    line = QUICK.model_copy(update={"max_message_bytes": 1 << 16})
    with running_server(ServerConfig(**small), dim=DIM) as leader:
        with following(leader, **small) as b:
            nodes = [connect(b, f"n{i}", config=line) for i in range(3)]
            ids = nodes[0].words(*[f"말{i}" for i in range(600)])
            usage = ContextSums(0, "뉴스", 2, ids, np.ones((600, DIM), "f2"), np.ones(600, "f4"))
            with b.link.lock:  # all in one entry
                for node in nodes:
                    counts, place = counted(ids), f"{node.name}{'x' * 30_000}"
                    push = Push(
                        node.name, 1, 0, counts=counts, tokens=600, usage=(usage,), offset=place
                    )
                    node.client.push(push)
                nodes[0].sequence = 1
                nodes[0].push(moved(ids[:3], 1.0))
            until(lambda: leader.state.meters.pushes == 4)
            assert b.link.failed is None
            assert read(leader, ids[:3])[:, 0].tolist() == [1.0] * 3
            assert leader.state.vocabulary.counts(ids).tolist() == [3.0] * 600
            (used,) = added_up(leader.state.accounts.usage.held([0]))
            assert used.documents.shape == (600, UNITS)
            assert used.documents.sum() == 1800
        place = leader.state.ledger.of("n2").offset
        assert len(place) == 30_002
        with following(leader, **small) as b:
            assert b.state.ledger.of("n2").offset == place
