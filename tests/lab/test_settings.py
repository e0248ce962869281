"""Settings that the laboratory adds to sections of the core, and files without the laboratory."""

from __future__ import annotations

from importlib.metadata import EntryPoints

import pytest
from pydantic import Field

from embedding.kernel import config
from embedding.kernel.config import Config, extended, part_of, validate
from embedding.kernel.errors import ConfigError
from embedding.server.config import SyncConfig
from yeoron_lab.settings import ADDED, PacedSettings


def section() -> type[Config]:
    @extended("sync")
    class Rules(Config):
        policy: str = Field(default="ssp")

    return Rules


def test_a_section_has_the_fields_of_the_laboratory() -> None:
    for kind in ADDED["sync"]:
        assert set(kind.model_fields) <= set(SyncConfig.model_fields)
        assert kind.constants().items() <= SyncConfig.constants().items()
        assert kind.REMOVED.items() <= SyncConfig.REMOVED.items()
    assert part_of(SyncConfig.model_validate({"tau": 7}), PacedSettings).tau == 7
    with pytest.raises(ConfigError, match=r"yeoron.toml: tau: a number of at least 1"):
        validate(SyncConfig, {"tau": 0}, "yeoron.toml")


def test_without_the_laboratory_a_file_that_names_one_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(config, "installed", lambda: EntryPoints(()))
    config._added.cache_clear()
    try:
        alone = section()
    finally:
        monkeypatch.undo()
        config._added.cache_clear()
    with pytest.raises(ConfigError) as refused:
        validate(alone, {"tau": 7}, "yeoron.toml")
    assert str(refused.value) == (
        "yeoron.toml: unknown setting 'tau'; take it out. "
        'pip install "yeoron[all]" brings settings of the laboratory.'
    )
    with pytest.raises(ConfigError, match="PacedSettings is not added to Rules"):
        part_of(alone(), PacedSettings)
