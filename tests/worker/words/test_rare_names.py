"""A crawled word gets a row only when several authors and sources used it: the whole way, from
documents through the text room, a node's learner and the wire to the server's vocabulary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from crawling_node import Node

from embedding.exchange.contributors import Contributors, contributor_id
from embedding.kernel.errors import RefusedError
from embedding.server.admitting import AnonymityThreshold
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer, running_server
from embedding.text.config import TextConfig

NAME = "홍길동"


@pytest.fixture
def server() -> Iterator[ParameterServer]:
    config = ServerConfig(min_count=2, min_authors=3, min_sources=2, device="cpu")
    with running_server(config, SyncConfig(policy="asp"), dim=4) as found:
        yield found


@pytest.fixture
def nodes(server: ParameterServer) -> Iterator[list[Node]]:
    found = [Node(server, "n0"), Node(server, "n1")]
    # Two sources are known from the beginning.
    found[0].read("news", ("r0", "시작"))
    found[1].read("board", ("b0", "시작"))
    yield found
    for node in found:
        node.client.close()


def rows(server: ParameterServer, *words: str) -> list[bool]:
    return (server.state.vocabulary.ids(words) >= 0).tolist()


def test_a_name_that_one_author_repeats_gets_no_row(
    server: ParameterServer, nodes: list[Node]
) -> None:
    for _ in range(5):
        nodes[1].read("board", ("b1", f"{NAME} {NAME} 그 사람"))
    assert rows(server, NAME) == [False]
    assert server.state.words.anonymity.withheld > 0


def test_several_authors_of_one_source_are_not_enough_but_those_of_two_are(
    server: ParameterServer, nodes: list[Node]
) -> None:
    for author in ("b1", "b2", "b3", "b4"):
        nodes[1].read("board", (author, f"{NAME} 마스크 {NAME}"))
    assert rows(server, NAME, "마스크") == [False, False]
    for author in ("r1", "r2"):
        nodes[0].read("news", (author, "마스크 마스크"))
    assert rows(server, NAME, "마스크") == [False, True]


def test_two_authors_of_two_sources_are_not_enough(
    server: ParameterServer, nodes: list[Node]
) -> None:
    for _ in range(3):
        nodes[0].read("news", ("r1", f"{NAME} {NAME}"))
        nodes[1].read("board", ("b1", f"{NAME} {NAME}"))
    assert rows(server, NAME) == [False]


def test_unknown_authors_of_a_source_are_one_author(
    server: ParameterServer, nodes: list[Node]
) -> None:
    nodes[0].read("news", *[(None, "감염병 감염병")] * 9)
    nodes[1].read("board", *[(None, "감염병 감염병")] * 9)
    assert rows(server, "감염병") == [False]
    nodes[1].read("board", ("b1", "감염병 감염병"))
    assert rows(server, "감염병") == [True]


def test_unknown_authors_of_three_sources_are_three(
    server: ParameterServer, nodes: list[Node]
) -> None:
    for source in ("news", "board", "blog"):
        nodes[0].read(source, (None, "감염병 감염병"))
    assert rows(server, "감염병") == [True]


def test_unknown_authors_count_each_where_a_setting_says_so(
    server: ParameterServer, nodes: list[Node]
) -> None:
    each = TextConfig(tokenizer="whitespace", unknown_authors="each")
    node = Node(server, "n2", text=each)
    node.read("news", *[(None, "감염병 감염병")] * 2)
    assert rows(server, "감염병") == [False]
    node.read("board", (None, "감염병 감염병"))
    assert rows(server, "감염병") == [True]
    node.client.close()


def test_words_of_a_corpus_are_not_asked_for(server: ParameterServer, nodes: list[Node]) -> None:
    reader = Node(server, "n2", crawls=False)
    reader.read("corpus", ("x", f"{NAME} {NAME}"))
    assert rows(server, NAME) == [True]
    reader.client.close()


def test_one_source_is_enough_where_no_other_is_read() -> None:
    config = ServerConfig(min_count=1, min_authors=2, min_sources=2, device="cpu")
    with running_server(config, SyncConfig(policy="asp"), dim=4) as server:
        node = Node(server, "n0")
        node.read("news", ("r1", "말"))
        assert rows(server, "말") == [False]
        node.read("news", ("r2", "말"))
        assert rows(server, "말") == [True]
        node.client.close()


def test_nothing_that_names_an_author_is_kept(server: ParameterServer, nodes: list[Node]) -> None:
    nodes[1].read("board", ("pseudonym-of-somebody", f"{NAME} {NAME}"))
    heard = server.state.words.anonymity._heard.get(NAME)
    assert heard is not None
    assert all(0 <= one < 2**32 for one in heard.authors)


def test_signs_of_two_words_cannot_be_brought_together() -> None:
    assert contributor_id(b"k", "말", b"x") != contributor_id(b"k", "글", b"x")
    assert contributor_id(b"k", "말", b"x") != contributor_id(b"l", "말", b"x")
    assert contributor_id(b"k", "말", b"x") == contributor_id(b"k", "말", b"x")


def said(*words: tuple[Sequence[int], Sequence[int]]) -> Contributors:
    return Contributors.of(words)


def test_a_resent_offer_counts_nobody_twice() -> None:
    witnesses = AnonymityThreshold(2, 1, 100, ["news"])
    for _ in range(5):
        assert witnesses.passed(["말"], ["말"], said(([1], [7]))) == []
    assert witnesses.passed(["말"], ["말"], said(([2], [7]))) == ["말"]


def test_what_waits_is_bounded_and_forgotten_by_disuse() -> None:
    witnesses = AnonymityThreshold(3, 1, 100, ["news"])
    for i in range(1_000):
        witnesses.passed([], [f"말{i}"], said((range(i, i + 9), [7])))
        assert len(witnesses) <= 100
    assert witnesses.passed(["말0"], ["말0"], said(([1], [7]))) == []
    heard = witnesses._heard.get("말999")
    assert heard is not None
    assert len(heard.authors) == 3


@pytest.mark.parametrize(
    "ends", [np.array([1, 5]), np.array([2, 1]), np.array([-1, 2]), np.array([], dtype=np.int64)]
)
def test_a_malformed_testimony_is_refused(ends: np.ndarray) -> None:
    signs = np.array([1, 2])
    with pytest.raises(RefusedError, match="signs"):
        Contributors(signs, ends, signs, np.array([1, 2]))


def test_a_testimony_of_other_words_is_refused(server: ParameterServer, nodes: list[Node]) -> None:
    with pytest.raises(RefusedError, match="signs of 1 words for 2"):
        nodes[0].client.admit(["가", "나"], np.array([9, 9]), said(([1], [2])))
    assert rows(server, "가", "나") == [False, False]
