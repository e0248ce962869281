"""What `yeoron train` takes of yeoron.toml and the environment, and what it passes over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from embedding.commands.training import TRAIN_OPTIONS, request_of
from embedding.kernel.records import WindowUnit
from embedding.settings import Settings, given_settings
from embedding.text.config import TextConfig
from embedding.training.checks import check_options
from embedding.training.request import PASSED_OVER, used_settings

TRAINING_SECTIONS = ("model", "text", "stream", "node", "exchange", "sync", "server")


def request(
    settings: dict[str, dict[str, Any]], *, dated: WindowUnit | None = None, **options: object
):
    """The request of a command line that names `options`, under such settings."""
    return request_of(Path("c.jsonl"), options, settings, dated=dated)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder without a yeoron.toml, until a test writes one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_settings_hold_where_no_option_says_otherwise() -> None:
    settings = {
        "model": {"dim": 30, "window": 7},
        "server": {"min_count": 2, "half_life_tokens": 10},
        "node": {"past_tokens": 5, "replay_ratio": 1.5, "block_tokens": 900},
        "sync": {"policy": "bsp", "staleness": 9},
        "exchange": {"compression": "onebit", "rows": "float32"},
        "text": {"tokenizer": "script", "min_length": 2},
        "stream": {"replay_tokens": 4_000},
    }
    asked = request(settings)
    assert (asked.model.dim, asked.model.window, asked.server.min_count) == (30, 7, 2)
    node = asked.node_config
    assert (node.past_tokens, node.replay_ratio, node.block_tokens) == (5, 1.5, 900)
    assert (asked.sync.policy, asked.sync.staleness) == ("bsp", 9)
    assert (asked.exchange.compression, asked.exchange.rows) == ("onebit", "float32")
    assert (asked.text.tokenizer, asked.text.min_length, asked.text.mask) == ("script", 2, True)
    assert (asked.stream.replay_tokens, asked.server.half_life_tokens) == (4_000, 10)


def test_phrases_are_found_where_windows_are_compared() -> None:
    usual = TextConfig().phrases
    assert request({}, dated=WindowUnit.MONTH, tokenizer="kiwi").text.phrases == usual
    assert request({}, tokenizer="kiwi").text.phrases == 0
    assert request({"text": {"phrases": 7}}, tokenizer="kiwi").text.phrases == 7


def test_an_option_wins_also_where_it_says_what_is_usual() -> None:
    settings = {"model": {"dim": 30, "window": 7}, "node": {"block_tokens": 900}}
    asked = request(settings, dim=100, context=5, block_tokens=25_000)
    assert (asked.model.dim, asked.model.window) == (100, 5)
    assert asked.node_config.block_tokens == 25_000


def test_the_budget_of_rehearsals_is_an_option_that_wins_over_the_setting() -> None:
    settings = {"node": {"rehearsal_passes": 4.0, "past_tokens": 5}}
    dated = {"dated": WindowUnit.MONTH}
    assert request({}, **dated).node_config.rehearsal_passes == 30
    assert request(settings, **dated).node_config.rehearsal_passes == 4
    for passes in (0.0, 2.5, 30.0):
        asked = request(settings, rehearsal_passes=passes, **dated).node_config
        assert (asked.rehearsal_passes, asked.past_tokens) == (passes, 5)
    # What holds for every command may be of no use to one: plain text has no windows.
    check_options(request(settings))
    check_options(request({}, rehearsal_passes=0.0))


def test_environment_wins_over_the_file(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (alone / "yeoron.toml").write_text("[model]\ndim = 30\nnegative = 3\n", encoding="utf-8")
    monkeypatch.setenv("YEORON_MODEL__DIM", "40")
    found, _ = used_settings(given_settings().values)
    assert request(found).model.dim == 40
    assert request(found).model.negative == 3


def test_every_setting_of_its_sections_is_used_or_passed_over() -> None:
    """What is set reaches the request's own configurations, or is named in PASSED_OVER."""
    known = set(TRAIN_OPTIONS.values())
    for section in TRAINING_SECTIONS:
        room = Settings.model_fields[section].annotation
        assert room is not None
        for name in room.model_fields:
            if name in PASSED_OVER.get(section, ()) or known & {name, f"{section}.{name}"}:
                continue
            value = getattr(room(), name)
            asked = request({section: {name: value}})
            part = asked.node if section == "node" else getattr(asked, section)
            assert name in part.model_fields_set, f"{section}.{name}"
    for section, names in PASSED_OVER.items():
        room = Settings.model_fields[section].annotation
        assert room is not None
        assert set(names) <= set(room.model_fields)


def test_what_means_nothing_to_it_is_passed_over_and_named(yeoron, alone: Path) -> None:
    values = {"server": {"port": 1, "min_count": 3}, "node": {"flush_seconds": 2}, "web": {}}
    found, passed_over = used_settings(values)
    assert {name: own for name, own in found.items() if own} == {"server": {"min_count": 3}}
    assert passed_over == ["node.flush_seconds", "server.port"]
    (alone / "yeoron.toml").write_text("[server]\nport = 8901\n[web]\nport = 8902\n")
    (alone / "c.txt").write_text("가 나 다\n" * 20, encoding="utf-8")
    done = yeoron("train", "c.txt", "--epochs", "0")
    assert "yeoron: a training of a file does not use server.port.\n" in done.err
    assert "web.port" not in done.err


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("YEORON_NODE__PAST_TOKENS", "abc", "node.past_tokens"),
        ("YEORON_NODE__HELD_OUT", "1", "node.held_out"),
        ("YEORON_NODE__HELD_OUT", "-0.1", "node.held_out"),
        ("YEORON_NODE__REHEARSAL_PASSES", "-1", "node.rehearsal_passes"),
        ("YEORON_NODE__REHEARSAL_SHARE", "2", "node.rehearsal_share"),
        ("YEORON_NODE__PAST_TOKNS", "5", "unknown setting 'node.past_tokns'"),
        ("YEORON_NOED__PAST_TOKENS", "5", "YEORON_NOED__PAST_TOKENS: there is no section 'noed'"),
    ],
)
def test_a_training_refuses_a_variable_by_name(
    yeoron, alone: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, reason: str
) -> None:
    text = alone / "c.txt"
    text.write_text("a b c\n" * 50, encoding="utf-8")
    monkeypatch.setenv(variable, value)
    done = yeoron("train", text)
    assert done.code == 2
    assert reason in " ".join(done.err.split())
    assert done.err.count(". ") == 0, "one sentence"
    assert done.out == ""
