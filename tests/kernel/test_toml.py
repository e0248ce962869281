"""TOML files that cannot be read are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from embedding.kernel.config import read_toml
from embedding.kernel.errors import ConfigError


def test_a_file_nested_without_end_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(f"a = {'[' * 5_000}{']' * 5_000}\n")
    with pytest.raises(ConfigError, match=r"a\.toml: it is nested too deeply"):
        read_toml(path)
