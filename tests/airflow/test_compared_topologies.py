"""What the topologies of `compare_training` stand for."""

from __future__ import annotations

from pathlib import Path

import pytest

from embedding.kernel.errors import ConfigError
from embedding.settings import Settings


@pytest.fixture
def setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict:
    monkeypatch.setenv("YEORON_DATA", str(tmp_path))
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


def test_a_corpus_is_one_that_the_form_offers(setting: dict, tmp_path: Path) -> None:
    """Whoever may start DAGs must not have any file of this machine read."""
    from embedding_airflow.training import request_of

    home = tmp_path / "home"
    home.mkdir()
    settings = Settings(paths={"home": home})
    (home / "own.txt").write_text("봄 여름\n" * 10, encoding="utf-8")
    (home / "away.txt").symlink_to("/etc/passwd")
    for accepted in (setting["corpus"], str(home / "own.txt")):
        request = request_of(settings, {**setting, "topology": "ps", "corpus": accepted}, None)
        assert request.corpus == Path(accepted)
    for refused in ("/etc/passwd", f"{home}/../../etc/passwd", str(home / "away.txt"), "/proc/1"):
        with pytest.raises(ConfigError, match="the form lists them"):
            request_of(settings, {**setting, "topology": "ps", "corpus": refused}, None)
