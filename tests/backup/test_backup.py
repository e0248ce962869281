"""`yeoron backup` and `yeoron restore`: of a home that runs, byte for byte, or not at all."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from backup.conftest import (
    DAY,
    WORDS,
    Pusher,
    fill_stores,
    frontier_address,
    home_settings,
    serving_home,
    tree,
)
from embedding.backup import collecting, repositories
from embedding.backup.collecting import back_up
from embedding.backup.manifest import parse_backup
from embedding.backup.restoring import restore
from embedding.cli import app
from embedding.crawl.frontier import Frontier
from embedding.kernel.errors import ConfigError, InputError, PlatformError, UnavailableError
from embedding.platform.operate import bring_up
from embedding.server.recovery.checkpoint import numbers
from embedding.settings import Settings
from embedding.snapshots.evidence import EvidenceStore
from embedding.snapshots.store import SnapshotStore

BACKUP_MANIFEST = "backup.json"
UNFINISHED = "backup.unfinished"
STAGE = ".restoring"
UMASK = 0o077


class Killed(BaseException):
    pass


def moved(settings: Settings, home: Path) -> Settings:
    paths = settings.paths.model_copy(update={"home": home})
    return settings.model_copy(update={"paths": paths})


@pytest.mark.timeout(300)
def test_a_home_that_runs_comes_back_as_it_was_at_that_moment(running, tmp_path):
    settings, server, node = running
    node.learn(["새말"], 2.0)
    before = node.rows([*WORDS, "새말"])
    manifest = back_up(settings, str(tmp_path / "backup"))
    tokens = server.status()["tokens"]
    node.learn(["뒷말"], 5.0)  # after the backup: not in it
    fresh = moved(settings, tmp_path / "fresh")
    assert restore(fresh, str(tmp_path / "backup")) == manifest
    assert tree(fresh.paths.snapshots) == {
        name: data for name, data in tree(settings.paths.snapshots).items() if name != ".lock"
    }
    assert tree(fresh.paths.trends) == tree(settings.paths.trends)
    assert tree(fresh.paths.mlflow / "artifacts") == tree(settings.paths.mlflow / "artifacts")
    SnapshotStore(fresh.paths.snapshots).open().verify()
    found = EvidenceStore(fresh.paths.evidence).find("전세", DAY.start, DAY.end)
    assert [one.url for one in found] == ["https://news.example/2"]
    for folder in (fresh.paths.mlflow / "mlflow.db", fresh.paths.airflow / "airflow.db"):
        with closing(sqlite3.connect(folder)) as database:
            assert database.execute("SELECT id FROM runs").fetchall() == [("r1",)]
    frontier = Frontier(frontier_address(fresh))
    assert frontier.discover("뉴스", [("https://news.example/1", None)], 0.0) == 0
    frontier.close()
    assert not fresh.paths.logs.exists()
    assert (fresh.paths.home / "configuration" / "sources.toml").is_file()
    server.stop()
    with serving_home(fresh) as again:
        assert again.status()["tokens"] == tokens
        back = Pusher(fresh, again)
        assert back.sequence == node.sequence - 1
        for mine, its in zip(before, back.rows([*WORDS, "새말"]), strict=True):
            np.testing.assert_array_equal(mine, its)
        back.client.close()


def test_a_home_at_rest_can_be_copied_too(settings, tmp_path):
    with serving_home(settings) as server:
        node = Pusher(settings, server)
        node.learn(WORDS)
        node.client.close()
    manifest = back_up(settings, str(tmp_path / "backup"))
    assert any(name.startswith("checkpoints/checkpoint-") for name in manifest.files)
    assert not (settings.paths.home / ".backup").exists()


def test_all_that_is_done_in_the_frontier_is_in_the_checkpoint(running, tmp_path):
    """A checkpoint that comes while the frontier is copied would know of documents that the one
    that was taken does not: another moment is taken then."""
    settings, server, node = running
    copies = []
    real = collecting.dump

    def slow(address: str, target: Path) -> bool:
        done = real(address, target)
        if "frontier" in address:
            copies.append(target)
            if len(copies) < 3:
                node.learn(["새말"], 1.0)
                server.checkpoint(wait=True)
        return done

    with patch.object(collecting, "dump", slow):
        manifest = back_up(settings, str(tmp_path / "backup"))
    assert len(copies) == 3
    newest = numbers(settings.paths.checkpoints)[-1]
    held = {name.split("/")[1] for name in manifest.files if "/checkpoint-" in name}
    assert held == {f"checkpoint-{newest:08d}"}


def test_where_no_moment_is_quiet_it_says_so(running, tmp_path):
    settings, server, node = running
    real = collecting.dump

    def never(address: str, target: Path) -> bool:
        if "frontier" in address:
            node.learn(["새말"], 1.0)
            server.checkpoint(wait=True)
        return real(address, target)

    with (
        patch.object(collecting, "dump", never),
        pytest.raises(UnavailableError, match="try again"),
    ):
        back_up(settings, str(tmp_path / "backup"))
    assert not (tmp_path / "backup").exists()


def test_a_server_that_does_not_answer_is_named(settings, tmp_path):
    with serving_home(settings):
        line = settings.exchange.model_copy(update={"location": "grpc://127.0.0.1:1"})
        deaf = settings.model_copy(update={"exchange": line})
        with pytest.raises(UnavailableError, match="wrote no checkpoint"):
            back_up(deaf, str(tmp_path / "backup"))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("after", [0, 1, 7, -1])
def test_a_backup_that_was_killed_passes_for_none_and_the_next_call_ends_it(
    running, tmp_path, after: int
):
    settings, _, _ = running
    place, put, calls = tmp_path / "backup", repositories.FolderRepository.put, []
    write = repositories.FolderRepository.write

    def killed(self, source: Path, name: str):
        calls.append(name)
        if len(calls) == after + 1:
            raise Killed
        return put(self, source, name)

    def unwritten(self, name: str, data: bytes):
        if after == -1 and name == BACKUP_MANIFEST:
            raise Killed
        write(self, name, data)

    with (
        patch.object(repositories.FolderRepository, "put", killed),
        patch.object(repositories.FolderRepository, "write", unwritten),
        pytest.raises(Killed),
    ):
        back_up(settings, str(place))
    assert not (place / BACKUP_MANIFEST).exists()
    fresh = moved(settings, tmp_path / "fresh")
    with pytest.raises(InputError, match="was cut off"):
        restore(fresh, str(place))
    assert not fresh.paths.home.exists()
    (place / "evidence").mkdir(exist_ok=True)
    (place / "evidence" / "left").touch()
    back_up(settings, str(place))
    restore(fresh, str(place))
    assert not (fresh.paths.evidence / "left").exists()


def test_a_backup_that_was_killed_leaves_no_copy_in_the_home_for_long(running, tmp_path):
    settings, _, _ = running
    (settings.paths.home / ".backup" / "snapshots").mkdir(parents=True)
    back_up(settings, str(tmp_path / "backup"))
    assert not (settings.paths.home / ".backup").exists()


def test_two_at_once_are_refused(running, tmp_path):
    settings, _, _ = running
    inside, go = threading.Event(), threading.Event()
    real = collecting.collect

    def waits(*arguments):
        inside.set()
        assert go.wait(60)
        return real(*arguments)

    with patch.object(collecting, "collect", waits):
        first = threading.Thread(target=back_up, args=(settings, str(tmp_path / "one")))
        first.start()
        assert inside.wait(60)
    with pytest.raises(ConfigError, match="another backup"):
        back_up(settings, str(tmp_path / "two"))
    go.set()
    first.join(60)
    assert (tmp_path / "one" / BACKUP_MANIFEST).is_file()


@pytest.fixture
def backup(running, tmp_path: Path) -> tuple[Settings, Path]:
    settings, _, _ = running
    back_up(settings, str(tmp_path / "backup"))
    return moved(settings, tmp_path / "fresh"), tmp_path / "backup"


def change(place: Path, **facts: object) -> None:
    content = json.loads((place / BACKUP_MANIFEST).read_text("utf-8"))
    (place / BACKUP_MANIFEST).write_text(json.dumps(content | facts), "utf-8")


@pytest.mark.timeout(300)
def test_what_is_no_backup_of_ours_is_refused_and_nothing_is_made(backup, tmp_path):
    fresh, place = backup
    whole = (place / BACKUP_MANIFEST).read_bytes()

    def refused(match: str, kind: type[Exception] = InputError) -> None:
        with pytest.raises(kind, match=match):
            restore(fresh, str(place))
        assert not fresh.paths.home.exists() or not any(fresh.paths.home.iterdir())
        (place / BACKUP_MANIFEST).write_bytes(whole)

    change(place, format=2)
    refused("format 2 and was made by Yeoron .*; this version reads up to format 1")
    change(place, kind="something")
    refused("of another program")
    change(place, pool="other")
    refused("was changed after it was written")
    newer = parse_backup(whole, "here").model_copy(update={"formats": {"snapshot": 9}}).sealed()
    (place / BACKUP_MANIFEST).write_text(newer.to_json(), "utf-8")
    refused("its snapshot has format 9, which a newer version of Yeoron wrote")
    (place / BACKUP_MANIFEST).write_bytes(whole[:100])
    refused("not valid JSON")
    change(place, files={"snapshots/../../x": {"size": 1, "sha256": "0" * 64}})
    refused("snapshots/")
    (place / BACKUP_MANIFEST).unlink()
    refused("there is no backup")
    name = next(one for one in json.loads(whole)["files"] if one.endswith("vectors.arrow"))
    data = (place / name).read_bytes()
    (place / name).write_bytes(data[:-1])
    refused(f"{name} in .* is damaged")
    (place / name).unlink()
    refused(f"has no {name}")
    (place / name).write_bytes(data)
    assert restore(fresh, str(place)).files


def test_another_platform_s_settings_are_refused(backup):
    fresh, place = backup
    model = fresh.model.model_copy(update={"dim": 8})
    with pytest.raises(ConfigError, match="another model"):
        restore(fresh.model_copy(update={"model": model}), str(place))
    cluster = fresh.cluster.model_copy(update={"pool": "other"})
    with pytest.raises(ConfigError, match=r"another cluster\.pool"):
        restore(fresh.model_copy(update={"cluster": cluster}), str(place))
    server = fresh.server.model_copy(update={"state_dir": place.parent / "elsewhere"})
    with pytest.raises(
        ConfigError, match=r"keep in .*elsewhere what would .*\(server.state_dir, crawl"
    ):
        restore(fresh.model_copy(update={"server": server}), str(place))
    crawl = fresh.crawl.model_copy(
        update={"frontier": SecretStr(f"sqlite:///{place.parent / 'f.db'}")}
    )
    with pytest.raises(ConfigError, match=r"what would be put into .*frontier"):
        restore(fresh.model_copy(update={"crawl": crawl}), str(place))
    server = fresh.server.model_copy(update={"split": "columns"})
    with pytest.raises(ConfigError, match="split by rows"):
        restore(fresh.model_copy(update={"server": server}), str(place))
    crawl = fresh.crawl.model_copy(
        update={"frontier": SecretStr("postgresql://nobody@127.0.0.1:1/x")}
    )
    with pytest.raises(ConfigError, match="holds the frontier of a sqlite database"):
        restore(fresh.model_copy(update={"crawl": crawl}), str(place))
    assert not fresh.paths.home.exists()


def test_a_home_that_holds_something_is_refused(backup):
    fresh, place = backup
    fresh.paths.home.mkdir()
    (fresh.paths.home / "notes").touch()
    with pytest.raises(InputError, match="holds notes; an empty home"):
        restore(fresh, str(place))
    assert [one.name for one in fresh.paths.home.iterdir()] == ["notes"]


def test_a_place_that_holds_something_is_refused(running, tmp_path):
    settings, _, _ = running
    place = tmp_path / "backup"
    place.mkdir()
    (place / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty"):
        back_up(settings, str(place))
    assert tree(place) == {"thesis.txt": b"mine"}
    (place / "thesis.txt").unlink()
    (place / "thesis").mkdir()
    with pytest.raises(InputError, match="is not empty"):
        back_up(settings, str(place))
    (place / UNFINISHED).touch()
    back_up(settings, str(place))
    assert not (place / "thesis").exists()
    held = tree(place)
    with pytest.raises(InputError, match="holds a backup"):
        back_up(settings, str(place))
    assert tree(place) == held
    assert UNFINISHED not in held
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(InputError, match="found a file"):
        back_up(settings, str(file))


def test_a_restore_that_was_killed_before_all_is_there_begins_again(backup):
    fresh, place = backup
    with (
        patch.object(repositories.FolderRepository, "get", side_effect=Killed),
        pytest.raises(Killed),
    ):
        restore(fresh, str(place))
    assert list(fresh.paths.home.iterdir()) == []
    (fresh.paths.home / STAGE / "snapshots").mkdir(parents=True)
    restore(fresh, str(place))
    assert not (fresh.paths.home / STAGE).exists()


def test_a_restore_that_was_killed_between_two_renames_is_ended_by_the_same_call(backup, tmp_path):
    fresh, place = backup
    rename, calls = Path.rename, []

    def killed(path: Path, target: Path) -> Path:
        if path.parent.name == STAGE:
            calls.append(path)
            if len(calls) == 3:
                raise Killed
        return rename(path, target)

    with patch.object(Path, "rename", killed), pytest.raises(Killed):
        restore(fresh, str(place))
    with pytest.raises(PlatformError, match="was cut off"):
        bring_up(fresh)
    other = tmp_path / "other"
    shutil.copytree(place, other)
    content = parse_backup((other / BACKUP_MANIFEST).read_bytes(), "here")
    (other / BACKUP_MANIFEST).write_text(
        content.model_copy(update={"versions": {}}).sealed().to_json(), "utf-8"
    )
    with pytest.raises(InputError, match="from another backup"):
        restore(fresh, str(other))
    restore(fresh, str(place))
    SnapshotStore(fresh.paths.snapshots).open().verify()
    assert (fresh.paths.home / "trends").is_dir()
    assert not (fresh.paths.home / STAGE).exists()


def test_too_small_a_disk_is_said_before(backup):
    fresh, place = backup
    usage = shutil.disk_usage(place)._replace(free=10)
    with (
        patch.object(shutil, "disk_usage", return_value=usage),
        pytest.raises(PlatformError, match="10 bytes free"),
    ):
        restore(fresh, str(place))
    assert list(fresh.paths.home.iterdir()) == []


def test_files_are_their_owner_s_alone(running, tmp_path):
    settings, _, _ = running
    fresh, place = moved(settings, tmp_path / "fresh"), tmp_path / "backup"
    before = os.umask(UMASK)  # as the commands have it
    try:
        back_up(settings, str(place))
        restore(fresh, str(place))
    finally:
        os.umask(before)
    for folder in (place, fresh.paths.home):
        for path in (folder, *folder.rglob("*")):
            assert path.stat().st_mode & 0o077 == 0, path


def test_evidence_that_is_joined_meanwhile_is_there(running, tmp_path):
    settings, _, _ = running
    month = next(settings.paths.evidence.iterdir())
    (part,) = list(month.glob("*.parquet"))
    real, seen = collecting._link, []

    def joined(path: Path, target: Path) -> None:
        if path == part and not seen:
            seen.append(path)
            path.rename(month / "n0-joined.parquet")
        real(path, target)

    with patch.object(collecting, "_link", joined):
        manifest = back_up(settings, str(tmp_path / "backup"))
    assert list(manifest.store("evidence")) == ["evidence/2020-02/n0-joined.parquet"]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("was", "now"), [(1, 2), (3, 1), (2, 3)])
def test_rows_come_back_on_another_number_of_shards(tmp_path, was: int, now: int):
    settings = home_settings(tmp_path / "home", shards=was)
    words = [*WORDS, *(f"말{at}" for at in range(20))]
    with serving_home(settings) as server:
        node = Pusher(settings, server)
        for at in range(3):
            node.learn(words, 1.0 + at)
        before = node.rows(words)
        fill_stores(settings)
        back_up(settings, str(tmp_path / "backup"))
        node.client.close()
    fresh = moved(settings, tmp_path / "fresh")
    fresh = fresh.model_copy(update={"server": fresh.server.model_copy(update={"shards": now})})
    restore(fresh, str(tmp_path / "backup"))
    with serving_home(fresh) as server:
        node = Pusher(fresh, server)
        assert node.sequence == 3
        for mine, its in zip(before, node.rows(words), strict=True):
            np.testing.assert_array_equal(mine, its)
        node.learn([*words, "나중"], 1.0)
        assert server.status()["tokens"] == 3 * 3 * len(words) + 3 * (len(words) + 1)
        node.client.close()


def test_the_commands(running, tmp_path, monkeypatch):
    settings, _, _ = running
    file = tmp_path / "yeoron.toml"
    server = settings.server
    file.write_text(
        f'[paths]\nhome = "{settings.paths.home}"\n[model]\ndim = 4\n[server]\n'
        f"port = {server.port}\nhttp_port = {server.http_port}\n"
    )
    monkeypatch.setenv("YEORON_SETTINGS", str(file))
    run, place = CliRunner().invoke, str(tmp_path / "backup")
    done = run(app, ["backup", place, "--json"])
    assert done.exit_code == 0, done.output
    facts = json.loads(done.output)
    assert facts["snapshots"] == 1
    assert (tmp_path / "backup" / "configuration" / "settings.toml").read_text() == file.read_text()
    monkeypatch.setenv("YEORON_PATHS__HOME", str(tmp_path / "fresh"))
    back = run(app, ["restore", place])
    assert back.exit_code == 0, back.output
    assert "every one is as it was written" in back.output
