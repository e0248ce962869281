"""What the topologies of `compare_training` stand for."""

from __future__ import annotations

from pathlib import Path

import pytest

from embedding.settings import Settings


@pytest.fixture
def setting(tmp_path: Path) -> dict:
    corpus = tmp_path / "c.txt"
    corpus.write_text("봄 여름 가을 겨울\n" * 10, encoding="utf-8")
    return {
        "policy": "ssp",
        "compression": "fp16",
        "model": "sgns",
        "dim": 8,
        "corpus": str(corpus),
        "nodes": 2,
        "tokens": 1_000,
        "epochs": 1,
    }


def test_servers_are_two_server_groups(setting: dict) -> None:
    from embedding_airflow.training import label_of, request_of, workable

    servers = {**setting, "topology": "servers"}
    request = request_of(Settings(), servers, None)
    assert (request.topology.kind, request.topology.server_groups) == ("ps", 2)
    assert label_of(servers) == "sgns-8-ssp-servers"
    assert request_of(Settings(), {**setting, "topology": "ps"}, None).topology.server_groups == 1
    wrong = {**servers, "policy": "hogwild"}
    fit, unfit = workable(Settings(), [servers, wrong])
    assert fit == [servers]
    assert "policy hogwild with server_groups 2" in unfit["sgns-8-hogwild-servers"]
