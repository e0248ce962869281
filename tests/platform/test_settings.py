"""Settings: order of sources, one sentence for a mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from embedding.kernel.errors import ConfigError
from embedding.settings import SETTINGS_VARIABLE, load_settings
from yeoron_demo.demo_settings import write_demo_settings

DATABASES = ("airflow", "mlflow", "frontier")


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(SETTINGS_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)


def test_an_empty_variable_names_no_settings_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(SETTINGS_VARIABLE, "")
    assert load_settings().toml is None
    (tmp_path / "yeoron.toml").write_text("[model]\ndim = 24\n", encoding="utf-8")
    assert load_settings().model.dim == 24


def test_environment_goes_before_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "y.toml"
    file.write_text("[ports]\nmlflow = 6001\nairflow = 6002\n")
    monkeypatch.setenv("YEORON_PORTS__MLFLOW", "6003")
    settings = load_settings(file)
    assert (settings.ports.mlflow, settings.ports.airflow) == (6003, 6002)


def test_one_key_of_a_section_leaves_the_others(tmp_path: Path) -> None:
    file = tmp_path / "y.toml"
    file.write_text('[server]\ndevice = "cpu"\n')
    settings = load_settings(file)
    assert settings.server.port == 8815
    assert settings.server_status_url == "http://127.0.0.1:8816/status"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[server]\nprot = 1\n", ["unknown setting", "server.prot", "y.toml"]),
        ("[ports]\nmlflow = 'x'\n", ["ports.mlflow", "'x'"]),
        ("[ports\n", ["not valid TOML", "y.toml"]),
        ("[nothing]\na = 1\n", ["unknown setting", "nothing"]),
        ("[model]\ndim = 0\n", ["model.dim"]),
        (
            "[model]\nmodel = 'glove'\n[stream]\nreplay = 'loss'\n",
            ["stream.replay loss", "glove", "uniform"],
        ),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path: Path, text: str, parts: list[str]) -> None:
    file = tmp_path / "y.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        load_settings(file)
    message = str(error.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.toml: no such file"):
        load_settings(tmp_path / "nowhere.toml")


def test_the_page_reads_this_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YEORON_PATHS__HOME", str(tmp_path / "state"))
    settings = load_settings()
    assert settings.page.snapshots == str(tmp_path / "state" / "snapshots")
    assert settings.page.reports == tmp_path / "state" / "trends"
    assert settings.page.trends == settings.trends


def test_a_demo_keeps_its_tables_in_its_own_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YEORON_SETTINGS", "unset")  # what the demo sets is put back
    monkeypatch.delenv("YEORON_SETTINGS")
    monkeypatch.setenv("YEORON_DATABASE__URL", "postgresql://db/platform")
    monkeypatch.setenv("YEORON_DATABASE__AIRFLOW_TASKS", "32")
    monkeypatch.setenv("YEORON_CRAWL__FRONTIER", "postgresql://db/frontier")
    chosen = load_settings()
    assert "postgresql" in chosen.database_address("mlflow")
    demo = write_demo_settings(chosen, tmp_path / "demo")
    for name in DATABASES:
        assert demo.database_address(name).startswith(f"sqlite:///{tmp_path}/demo/")


def test_a_demo_listens_on_the_ports_of_the_settings_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YEORON_SETTINGS", "unset")  # what the demo sets is put back
    monkeypatch.delenv("YEORON_SETTINGS")
    file = tmp_path / "y.toml"
    file.write_text(
        "[ports]\nmlflow = 5001\nsimweb = 8898\n[server]\nport = 8825\nhttp_port = 8826\n"
    )
    chosen = load_settings(file)
    demo = write_demo_settings(chosen, tmp_path / "demo")
    assert demo.ports == chosen.ports
    assert (demo.server.port, demo.server.http_port) == (8825, 8826)


def test_a_demo_keeps_the_addresses_of_old_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YEORON_SETTINGS", "unset")  # what the demo sets is put back
    monkeypatch.delenv("YEORON_SETTINGS")
    demo = write_demo_settings(load_settings(), tmp_path / "demo")
    assert demo.retention.evidence_days == 0
