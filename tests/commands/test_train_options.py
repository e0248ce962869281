"""What the options of `yeoron train` ask for when little is said."""

from __future__ import annotations

from inspect import signature
from pathlib import Path

import pytest

from embedding.commands.train_options import request_of
from embedding.commands.training import train
from embedding.models.config import ModelConfig, Schedule


def asked(**options: object) -> ModelConfig:
    """The model of a request; what is not given is as the command has it."""
    usual = {name: option.default for name, option in signature(train).parameters.items()}
    return request_of({**usual, "corpus": Path("c.jsonl"), **options}).model


def test_a_dated_training_falls_in_each_window_and_draws_fresh_noise() -> None:
    model = asked(dated=True, window=["month"])
    assert model.schedule is Schedule.WINDOW
    assert (model.noise_own, model.move) == (12, 6)
    assert model.noise_share == ModelConfig().noise_share


@pytest.mark.parametrize("schedule", ["linear", "constant", "window"])
def test_a_schedule_that_is_given_is_taken(schedule: str) -> None:
    assert asked(dated=True, window=["month"], schedule=schedule).schedule == schedule


def test_other_trainings_draw_noise_as_before() -> None:
    usual = ModelConfig()
    for model in (asked(), asked(dated=True, window=["day"], split="columns")):
        assert (model.noise_own, model.move) == (usual.noise_own, usual.move)
    assert asked().schedule is Schedule.LINEAR
