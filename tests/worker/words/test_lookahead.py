"""Reading ahead: no tick is lost or turned, and what is foreseen is what comes."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from in_process import InProcess, make_state

from embedding.exchange.protocol import Push
from embedding.kernel.records import Calendar, TokenBlock, WindowUnit
from embedding.worker.corpus.counting import count_words
from embedding.worker.words.lexicon import NodeLexicon
from embedding.worker.words.lookahead import LookAhead

DAY = 86_400.0
Tick = list[TokenBlock]


def tick(words: list[str], day: int = 0, sources: int = 1) -> Tick:
    parts = [words[at::sources] for at in range(sources)]
    return [
        TokenBlock.build(f"s{at}", [[part]], published=[day * DAY], keys=[f"{id(words)} {at}"])
        for at, part in enumerate(parts)
    ]


def words_of(blocks: Tick) -> list[str]:
    return [block.words[code] for block in blocks for code in block.codes]


def none_known(words: object) -> list[bool]:
    return [False for _ in words]  # type: ignore[attr-defined]


streams = st.lists(
    st.tuples(
        st.lists(st.sampled_from("가나다라마"), min_size=1, max_size=6),
        st.integers(0, 1),
        st.integers(1, 2),
    ),
    max_size=12,
)


@given(streams, st.integers(0, 20))
def test_ticks_stay_as_they_are_and_what_comes_was_foreseen(
    stream: list[tuple[list[str], int, int]], tokens: int
) -> None:
    day, given_ticks, days = 0, [], []
    for words, step, sources in stream:
        day += step
        days.append(day)
        given_ticks.append(tick(words, day, sources))
    pulled = 0

    def source() -> Iterator[Tick]:
        nonlocal pulled
        for each in given_ticks:
            pulled += 1
            yield each

    look_ahead = LookAhead(tokens, Calendar(WindowUnit.DAY), threading.Event())
    found = []
    for at, blocks in enumerate(look_ahead.ticks(source(), none_known)):
        found.append(blocks)
        held = range(at + 1, pulled)
        comes = Counter(
            word for i in held if days[i] == days[at] for word in words_of(given_ticks[i])
        )
        assert {word: look_ahead.coming(word) for word in "가나다라마"} == {
            word: comes[word] for word in "가나다라마"
        }
        own = [i for i in held if days[i] == days[at]]
        ahead = sum(len(words_of(given_ticks[i])) for i in own)
        whole = pulled == len(given_ticks) or days[pulled - 1] != days[at]
        assert ahead >= tokens or whole
        # No more is held than was asked for: one tick less would be too little.
        assert ahead - (len(words_of(given_ticks[own[-1]])) if own else 0) < max(tokens, 1)
    assert found == given_ticks


def test_a_wait_without_text_hands_out_what_is_held() -> None:
    one, two = tick(["가"]), tick(["나"])
    look_ahead = LookAhead(1_000, Calendar(WindowUnit.DAY), threading.Event())
    found = look_ahead.ticks(iter([one, two, [], one]), none_known)
    assert list(found) == [one, two, [], one]


def test_who_is_told_to_stop_gets_no_more() -> None:
    stop = threading.Event()
    look_ahead = LookAhead(2, Calendar(WindowUnit.DAY), stop)
    found = look_ahead.ticks(iter([tick(["가"]) for _ in range(9)]), none_known)
    assert next(found)
    stop.set()
    assert list(found) == []


def learnt(ahead: int) -> tuple[list[list[str]], dict[str, float]]:
    """What has a row in each tick, and the server's counts at the end; rows by three mentions."""
    state = make_state(min_count=3)
    look_ahead = LookAhead(ahead, Calendar(WindowUnit.DAY), threading.Event())
    line, lexicon = InProcess(state), NodeLexicon(look_ahead=look_ahead)
    stream = [
        tick(["흔", "흔", "흔", "뜬"]),
        tick(["흔", "뜬", "드문"]),
        tick(["뜬", "흔", "드문"]),
        tick(["드문", "흔"], day=1),
    ]
    rows = []
    for sequence, blocks in enumerate(look_ahead.ticks(iter(stream), lexicon.has), 1):
        tables = lexicon.encode(blocks, line)
        rows.append([w for b, t in zip(blocks, tables, strict=True) for w in words_with(b, t)])
        counts = count_words(blocks, tables, Calendar(WindowUnit.DAY))
        tokens = sum(block.n_tokens for block in blocks)
        line.push(Push(line.node, sequence, 0, counts=counts, tokens=tokens))
    return rows, line.counts()


def words_with(block: TokenBlock, table: np.ndarray) -> list[str]:
    return [word for word, row in zip(block.words, table.tolist(), strict=True) if row >= 0]


def test_a_word_has_its_row_from_its_first_mention_on_where_enough_follow_in_the_window() -> None:
    rows, counts = learnt(ahead=100)
    assert rows == [["흔", "뜬"], ["흔", "뜬"], ["뜬", "흔"], ["드문", "흔"]]
    assert counts == {"흔": 6.0, "뜬": 3.0, "드문": 3.0}


def test_without_looking_ahead_first_mentions_are_passed_by_and_counted_alike() -> None:
    rows, counts = learnt(ahead=0)
    assert rows == [["흔"], ["흔"], ["뜬", "흔"], ["드문", "흔"]]
    assert counts == {"흔": 6.0, "뜬": 3.0, "드문": 3.0}
