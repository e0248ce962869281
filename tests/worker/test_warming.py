"""A trainer of every model is warmed, and what it was warmed with changes nothing."""

from __future__ import annotations

import pytest

from embedding.models.config import Model, ModelConfig
from embedding.worker.warming import warm


@pytest.mark.parametrize("model", [each for each in Model if each is not Model.SPPMI])
def test_every_model_can_be_warmed(model: Model) -> None:
    for dim in (4, 100):
        warm(ModelConfig(model=model, dim=dim))


def test_kernels_are_there_afterwards() -> None:
    from embedding.models import sgns

    warm(ModelConfig(model=Model.SGNS, dim=8))
    made = [each for each in vars(sgns).values() if hasattr(each, "nopython_signatures")]
    assert any(each.nopython_signatures for each in made)
