"""A home whose server runs on another host."""

from __future__ import annotations

from pathlib import Path

import pytest

from embedding.backup.writing import back_up
from embedding.kernel.errors import ConfigError
from embedding.settings import HostsConfig, PathsConfig, Settings


def test_a_backup_without_the_servers_state_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    hosts = HostsConfig(address="192.0.2.7", server="192.0.2.8")
    settings = Settings(paths=PathsConfig(home=home), hosts=hosts)
    with pytest.raises(ConfigError, match=r"host 192\.0\.2\.8 \(hosts\.server\)"):
        back_up(settings, str(tmp_path / "backup"))
    assert not (tmp_path / "backup").exists() or not list((tmp_path / "backup").iterdir())
