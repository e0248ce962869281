"""What the options of `yeoron train` ask for when little is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from embedding.commands.training import request_of
from embedding.kernel.errors import ConfigError
from embedding.kernel.records import WindowUnit
from embedding.models.config import LearningRateSchedule, ModelConfig


def asked(dated: WindowUnit | None = None, **options: object) -> ModelConfig:
    """The model of a request; what is not given is as the command has it."""
    return request_of(Path("c.jsonl"), options, dated=dated).model


def test_a_dated_training_falls_in_each_window_and_draws_fresh_noise() -> None:
    model = asked(dated=WindowUnit.MONTH)
    assert model.schedule is LearningRateSchedule.WINDOW
    assert (model.noise_own, model.move) == (12, 6)
    assert model.noise_share == ModelConfig().noise_share


@pytest.mark.parametrize("schedule", ["linear", "constant", "window"])
def test_a_schedule_that_is_given_is_taken(schedule: str) -> None:
    assert asked(dated=WindowUnit.MONTH, schedule=schedule).schedule == schedule


@pytest.mark.parametrize(
    ("nodes", "given", "block"), [(1, None, 25_000), (4, None, 12_500), (4, 5_000, 5_000)]
)
def test_blocks_are_as_asked_and_smaller_with_many_nodes(nodes, given, block) -> None:
    asked = {"nodes": nodes} | ({} if given is None else {"block_tokens": given})
    assert request_of(Path("c.jsonl"), asked).node_config.block_tokens == block


def test_a_block_of_nothing_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="block_tokens"):
        request_of(Path("c.jsonl"), {"block_tokens": 0})


def test_other_trainings_draw_noise_as_before() -> None:
    usual = ModelConfig()
    for model in (asked(), asked(dated=WindowUnit.DAY, split="columns")):
        assert (model.noise_own, model.move) == (usual.noise_own, usual.move)
    assert asked().schedule is LearningRateSchedule.LINEAR
