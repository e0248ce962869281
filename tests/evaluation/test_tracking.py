"""Snapshots in a real MLflow."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from browsing import CHROMIUM, FLAGS, PATIENCE
from embedding.evaluation import registry, runs
from embedding.evaluation.config import EvaluationConfig
from embedding.kernel.errors import ConfigError, PlatformError
from embedding_airflow.tracking import comparison, provenance, recording, versions, views
from embedding_airflow.tracking.snapshots import track_snapshot
from waiting import until
from yeoron_lab.ports import lasting_port

mlflow = pytest.importorskip("mlflow")

USER, PASSWORD = "admin", "of-the-platform"


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MLflow database with its tables: making them takes seconds, copying them none."""
    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    runs.connect(f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def uri(database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    shutil.copy(database, tmp_path / "mlflow.db")
    monkeypatch.chdir(tmp_path)
    return f"sqlite:///{tmp_path}/mlflow.db"


def track(store, snapshot="latest", *, tracking_uri, **given):
    """A snapshot in MLflow; its likelihood may rise unless a test says by how much."""
    config = EvaluationConfig(**{"max_rise": None, "device": "cpu", **given})
    return track_snapshot(store, snapshot, config, tracking_uri=tracking_uri)


def _artifacts(client, run_id, path=None):
    return sorted(item.path for item in client.list_artifacts(run_id, path))


def test_a_snapshot_becomes_a_run_and_a_model_version(store, make, gold, uri, tmp_path):
    ref = store.publish(make())
    missing = tmp_path / "none.tsv"
    tracked = track(store, ref.id, tracking_uri=uri, gold=[missing, *gold], device="cpu")
    client = runs.connect(uri)
    run = client.get_run(tracked.run_id)
    assert run.info.status == "FINISHED"
    assert run.info.run_name == ref.id
    assert run.info.experiment_id == tracked.experiment_id
    assert run.data.params["policy"] == "ssp"
    assert len(run.data.params) <= 40
    assert not any(name.endswith((".policy", ".model")) for name in run.data.params), "said once"
    kind = runs.connect(uri).get_experiment(tracked.experiment_id).tags[recording.EXPERIMENT_KIND]
    assert kind == "custom_model_development"
    assert run.data.params["dim"] == "8"
    assert run.data.metrics == pytest.approx(tracked.metrics)
    assert run.data.metrics["nll/뉴스"] == pytest.approx(2.4)
    assert len(tracked.skipped) == 1
    assert str(missing) in tracked.skipped[0]
    assert _artifacts(client, tracked.run_id) == ["manifest.json", "model", "plots"]
    assert _artifacts(client, tracked.run_id, "plots") == [
        "plots/nll_by_source.png",
        "plots/norm_frequency.png",
        "plots/vocabulary.png",
    ]
    version = client.get_model_version_by_alias("yeoron", registry.NEWEST)
    assert str(version.version) == tracked.model_version == "1"
    assert version.tags["yeoron.snapshot"] == ref.id
    assert version.tags["yeoron.window"] == "2020-02"
    assert version.tags["yeoron.sources"] == "뉴스,청원"
    assert version.tags["yeoron.tokenizer_digest"] == "t" * 64


def test_tracking_again_continues_the_same_run(store, make, uri):
    ref = store.publish(make())
    first = track(store, ref.id, tracking_uri=uri, device="cpu")
    again = track(store, "latest", tracking_uri=uri, device="cpu")
    assert again == first
    client = runs.connect(uri)
    found = client.search_runs([first.experiment_id], f"tags.`{runs.KIND}` = 'snapshot'")
    assert [run.info.run_id for run in found] == [first.run_id]
    assert len(client.search_model_versions("name = 'yeoron'")) == 1
    assert len(client.get_metric_history(first.run_id, "words")) == 1


def test_a_duration_is_that_of_the_evaluation_also_days_later(store, make, uri, monkeypatch):
    ref = store.publish(make())
    with monkeypatch.context() as patch:
        patch.setattr(recording.time, "time", lambda: 1_600_000_000.0)
        track(store, ref.id, tracking_uri=uri)
    tracked = track(store, ref.id, tracking_uri=uri)
    info = runs.connect(uri).get_run(tracked.run_id).info
    assert info.start_time == 1_600_000_000_000
    assert 0 < info.end_time - info.start_time < 120_000


def test_gate_and_collapse_stand_at_the_head_of_a_run(store, make, uri, tmp_path):
    client = runs.connect(uri)
    data = make(nll=2.5)
    figures = {**data.quality, "mean_cosine": 0.1234, "first_axis": 0.2}
    ref = store.publish(replace(data, quality=figures))
    tracked = track(store, ref.id, tracking_uri=uri)
    shown = client.get_run(tracked.run_id).data
    note = shown.tags["mlflow.note.content"]
    assert note == "Gate passed. loss 2.500, mean cosine 0.123, first axis 0.200"
    assert shown.metrics["gate"] == tracked.metrics["gate"] == 1.0
    floors = tmp_path / "floors.toml"
    floors.write_text('[[floor]]\nmetric = "nll"\nat_most = 1.0\n')
    tracked = track(store, ref.id, tracking_uri=uri, floors=floors)
    shown = client.get_run(tracked.run_id).data
    assert shown.tags["mlflow.note.content"].startswith("Gate failed: nll")
    assert shown.metrics["gate"] == 0.0


def test_an_incomplete_snapshot_is_tagged_and_no_alias_names_it(store, make, uri):
    client = runs.connect(uri)

    def of(month, kept, **figures):
        data = make(month=month)
        config = {**data.config, "server": {"usage": kept}}
        quality = {**data.quality, **figures}
        ref = store.publish(replace(data, quality=quality, config=config))
        tracked = track(store, ref.id, tracking_uri=uri)
        return tracked, client.get_run(tracked.run_id).data

    _, shown = of(1, True, settled=1.0)
    assert shown.tags["yeoron.degraded"] == "no"
    assert _names(client, "newest") == "2020-01"
    _, shown = of(2, False, settled=0.0)
    assert shown.tags["yeoron.degraded"] == "learning"
    assert shown.metrics["gate"] == 1.0
    note = shown.tags["mlflow.note.content"]
    assert note.startswith("Gate passed.")
    assert "2020-02: it was cut before its model had learnt it to the end" in note
    broken, shown = of(3, True, settled=0.0)
    assert shown.tags["yeoron.degraded"] == "learning, usage"
    assert shown.metrics["gate"] == 0.0
    assert "2020-03: no word can be judged" in shown.tags[registry.GATE]
    assert "yeoron snapshot amend 2020-03" in shown.tags["mlflow.note.content"]
    assert broken.verdict.failed == ()
    assert _names(client, "newest") == "2020-02"
    version = client.get_model_version("yeoron", broken.model_version)
    assert version.tags["yeoron.degraded"] == "learning, usage"


def test_the_signature_of_the_model_is_typed(store, make, uri):
    store.publish(make())
    tracked = track(store, tracking_uri=uri)
    path = runs.connect(uri).download_artifacts(tracked.run_id, "model")
    signature = mlflow.models.Model.load(path).signature
    assert [str(column.type) for column in signature.inputs] == ["DataType.string"]
    assert {column.name: column.type.name for column in signature.outputs} == {
        "word": "string",
        "neighbour": "string",
        "nearness": "double",
        "rank": "long",
        "reason": "string",
    }
    assert [(one.name, one.dtype.name, one.default) for one in signature.params] == [
        ("n", "long", 10)
    ]


def test_a_run_that_died_half_way_is_continued(store, make, uri, monkeypatch):
    ref = store.publish(make())
    with monkeypatch.context() as patch:
        patch.setattr(versions, "register", lambda *_: (_ for _ in ()).throw(OSError("killed")))
        with pytest.raises(OSError, match="killed"):
            track(store, ref.id, tracking_uri=uri, device="cpu")
    client = runs.connect(uri)
    (failed,) = client.search_runs(["1"], f"tags.`{runs.KIND}` = 'snapshot'")
    assert failed.info.status == "FAILED"
    tracked = track(store, ref.id, tracking_uri=uri, device="cpu")
    assert tracked.run_id == failed.info.run_id
    assert client.get_run(tracked.run_id).info.status == "FINISHED"


def test_windows_form_a_series(store, make, uri):
    parent = None
    tracked = []
    for month, nll in ((1, 3.0), (2, 2.5), (3, 2.0)):
        parent = store.publish(make(month=month, nll=nll, parent=parent)).id
        tracked.append(track(store, parent, tracking_uri=uri, device="cpu"))
    client = runs.connect(uri)
    (stream,) = client.search_runs(["1"], f"tags.`{runs.KIND}` = 'stream'")
    history = client.get_metric_history(stream.info.run_id, "nll")
    assert [(entry.step, entry.value) for entry in history] == [(0, 3.0), (1, 2.5), (2, 2.0)]
    assert history[0].timestamp < history[1].timestamp < history[2].timestamp
    for entry in tracked:
        # The list folds children away, and then it would open on one row.
        assert runs.PARENT not in client.get_run(entry.run_id).data.tags
    assert client.get_model_version_by_alias("yeoron", "newest").version == 3


def test_a_run_that_the_stream_held_is_let_go(store, make, uri):
    ref = store.publish(make())
    run_id = track(store, ref.id, tracking_uri=uri, device="cpu").run_id
    client = runs.connect(uri)
    client.set_tag(run_id, runs.PARENT, "the run of an earlier version")
    assert track(store, ref.id, tracking_uri=uri, device="cpu").run_id == run_id
    assert runs.PARENT not in client.get_run(run_id).data.tags


def test_a_backfill_does_not_move_newest(store, make, uri):
    march, january = store.publish(make(month=3)), store.publish(make(month=1))
    late = track(store, march.id, tracking_uri=uri, device="cpu")
    track(store, january.id, tracking_uri=uri, device="cpu")
    client = runs.connect(uri)
    holder = client.get_model_version_by_alias("yeoron", "newest")
    assert str(holder.version) == late.model_version


def _names(client, alias):
    held = registry.holder(client, "yeoron", alias)
    return None if held is None else held.tags["yeoron.window"]


def test_only_the_gate_moves_the_aliases(store, make, uri, tmp_path):
    floors = tmp_path / "floors.toml"
    floors.write_text('[[floor]]\nmetric = "nll"\nat_most = 2.6\n')
    client = runs.connect(uri)
    seen = []
    for month, nll in ((1, 2.7), (2, 2.2), (3, 2.4), (4, 2.7), (5, 2.1)):
        ref = store.publish(make(month=month, nll=nll))
        tracked = track(store, ref.id, tracking_uri=uri, floors=floors, max_rise=0.15, device="cpu")
        seen.append((_names(client, "newest"), _names(client, "best"), tracked.aliases))
        version = client.get_model_version("yeoron", tracked.model_version)
        passed = "passed" if tracked.verdict.passed else "failed"
        assert version.tags[registry.GATE] == passed
        assert client.get_run(tracked.run_id).data.tags[registry.GATE].startswith(passed)
    assert seen == [
        (None, None, ()),
        ("2020-02", "2020-02", ("newest", "best")),
        ("2020-03", "2020-02", ("newest",)),
        ("2020-03", "2020-02", ()),
        ("2020-05", "2020-05", ("newest", "best")),
    ]


def test_an_alias_goes_back_when_its_version_fails_later(store, make, uri, tmp_path):
    client = runs.connect(uri)
    refs = [
        store.publish(make(month=month, nll=nll)) for month, nll in ((1, 2.1), (2, 2.3), (3, 2.0))
    ]
    for ref in refs:
        track(store, ref.id, tracking_uri=uri, device="cpu")
    assert (_names(client, "newest"), _names(client, "best")) == ("2020-03", "2020-03")
    floors = tmp_path / "floors.toml"
    named = []
    for ref in reversed(refs):
        floors.write_text('[[floor]]\nmetric = "nll"\nat_most = 1.0\n')
        again = track(store, ref.id, tracking_uri=uri, floors=floors, device="cpu")
        assert again.aliases == ()
        named.append((_names(client, "newest"), _names(client, "best")))
    assert named == [("2020-02", "2020-01"), ("2020-01", "2020-01"), (None, None)]


def test_a_loss_that_jumped_is_kept_from_the_aliases(store, make, uri):
    client = runs.connect(uri)
    for month, nll in ((1, 2.0), (2, 2.4), (3, 2.2)):
        ref = store.publish(make(month=month, nll=nll))
        last = track(store, ref.id, tracking_uri=uri, max_rise=0.15, device="cpu")
        if month == 2:
            (said,) = last.verdict.failed
            assert "20% above the 2 of the snapshot before" in said
    assert _names(client, "newest") == "2020-03"


def test_the_registered_model_answers(store, make, uri, monkeypatch):
    ref = store.publish(make())
    track(store, ref.id, tracking_uri=uri, device="cpu")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    mlflow.set_tracking_uri(None)
    expected = store.open(ref.id).neighbours("왕", 3)
    for address in ("models:/yeoron@latest", "models:/yeoron@newest", "models:/yeoron/1"):
        model = mlflow.pyfunc.load_model(address)
        found = model.predict(["왕", "없는말"], params={"n": 3})
        known = found[found.word == "왕"]
        assert list(known.neighbour) == [word for word, _ in expected]
        assert list(known.nearness) == pytest.approx([near for _, near in expected])
        assert list(known["rank"]) == [1, 2, 3]
        (unknown,) = found[found.word == "없는말"].to_dict("records")
        assert (unknown["neighbour"], unknown["rank"]) == ("", 0)
        assert unknown["reason"] == f"not in the vocabulary of snapshot {ref.id}"
    everything = model.predict(pd.DataFrame({"word": ["코로나"]}))
    assert len(everything) == 7
    assert "코로나" not in set(everything.neighbour)


def test_the_model_is_a_script_and_no_pickle(store, make, uri, tmp_path):
    store.publish(make())
    tracked = track(store, tracking_uri=uri, device="cpu")
    path = Path(runs.connect(uri).download_artifacts(tracked.run_id, "model", str(tmp_path)))
    names = {file.name for file in path.rglob("*") if file.is_file()}
    assert {"pyfunc.py", "vectors.arrow", "manifest.json", "MLmodel"} <= names
    assert not [name for name in names if name.endswith((".pkl", ".pickle"))]
    script = (path / "pyfunc.py").read_text()
    assert "import embedding" not in script
    assert "from embedding" not in script


def test_compared_trainings_are_children(store, make, uri):
    ref = store.publish(make())
    parent = comparison.start_parent("비교", {"grid": "dim"}, tracking_uri=uri, key="manual__1")
    assert comparison.start_parent("비교", {}, tracking_uri=uri, key="manual__1") == parent
    other = comparison.start_parent("비교", {}, tracking_uri=uri, key="manual__2")
    assert other != parent
    figures = {"nll": 2.0, "broken": float("nan")}
    children = [
        comparison.track_training(parent, {"dim": dim}, figures, ref, tracking_uri=uri, seconds=90)
        for dim in (8, 16, 8)
    ]
    assert children[0] == children[2] != children[1]
    client = runs.connect(uri)
    child = client.get_run(children[1])
    assert child.data.tags["mlflow.parentRunId"] == parent
    assert child.data.tags["yeoron.snapshot"] == ref.id
    assert child.data.params == {"dim": "16"}
    assert child.data.metrics == {"nll": 2.0}
    assert child.info.end_time - child.info.start_time == 90_000
    assert abs(child.info.end_time / 1000 - time.time()) < 60
    comparison.finish(parent, tracking_uri=uri)
    comparison.finish(parent, tracking_uri=uri)
    assert client.get_run(parent).info.status == "FINISHED"


def test_a_training_has_its_curves(store, make, uri):
    """Over tokens, at most 200 points and the last of them, beside the figures of the whole."""
    curve = [
        comparison.CurvePoint(i * 1_000, i * 0.5, {"loss": 5 - i / 200, "rate": float("nan")})
        for i in range(1, 502)
    ]
    parent = comparison.start_parent("비교", {}, tracking_uri=uri)
    child = comparison.track_training(
        parent, {}, {"loss": 2.0}, None, tracking_uri=uri, seconds=251, curve=curve
    )
    client = runs.connect(uri)
    history = client.get_metric_history(child, "curve/loss")
    assert 150 < len(history) <= 200
    assert (history[-1].step, history[-1].value) == (501_000, 5 - 501 / 200)
    assert [one.step for one in history] == sorted({one.step for one in history})
    run = client.get_run(child)
    assert run.info.start_time <= history[0].timestamp <= history[-1].timestamp
    assert abs(history[-1].timestamp - run.info.end_time) < 5_000
    assert run.data.metrics == {"loss": 2.0, "curve/loss": 5 - 501 / 200}


def test_a_comparison_opens_on_what_was_varied(store, make, uri):
    parent = comparison.start_parent("비교", {}, tracking_uri=uri, varied=["policy", "dim"])
    client = runs.connect(uri)
    run = client.get_run(parent)
    place = run.info.experiment_id
    link = f"(#/experiments/{place}/runs?viewStateShareKey={parent}"
    assert run.data.tags["mlflow.note.content"].count(link) == 2
    view = json.loads(client.get_experiment(place).tags[f"mlflow.sharedViewState.{parent}"])
    assert view["selectedColumns"][:3] == ["params.`policy`", "params.`dim`", "metrics.`nll`"]
    assert parent in view["searchFilter"]
    (chart,) = view["compareRunCharts"]
    assert (chart["type"], chart["selectedParams"]) == ("PARALLEL", ["policy", "dim"])


def test_a_run_has_at_most_forty_params(store, make, uri):
    from embedding.models.config import ModelConfig
    from embedding.server.config import SyncConfig

    sections = {"model": ModelConfig().model_dump(), "sync": SyncConfig().model_dump()}
    ref = store.publish(replace(make(), config={**make().config, **sections}))
    tracked = track(store, ref.id, tracking_uri=uri, device="cpu")
    assert len(runs.connect(uri).get_run(tracked.run_id).data.params) <= 40


def test_a_snapshot_and_a_compared_training_are_filtered_by_the_same_names(store, make, uri):
    ref = store.publish(make())
    other = replace(make(month=3), config={**make().config, "model": {"model": "glove"}})
    tracked = track(store, ref.id, tracking_uri=uri, device="cpu")
    track(store, store.publish(other).id, tracking_uri=uri, device="cpu")
    parent = comparison.start_parent("비교", {}, tracking_uri=uri)
    made = provenance.params(store.open(ref.id).manifest)
    child = comparison.track_training(parent, made, {"nll": 2.0}, ref, tracking_uri=uri, seconds=1)
    client = runs.connect(uri)
    alike = {tracked.run_id, child}
    named = {
        "model": "sgns",
        "dim": "8",
        "policy": "ssp",
        "compression": "onebit",
        "topology": "ps",
        "tokenizer": "kiwi",
        "nodes": "2",
        "corpus_digest": "d" * 64,
        "source_mix": '{"뉴스": 0.7, "청원": 0.3}',
        "tokenizer_digest": "t" * 64,
        "config.model.window": "5",
    }
    for run_id in alike:
        data = client.get_run(run_id).data
        assert named.items() <= data.params.items()
        for name in provenance.TAG_PARAMS:
            assert data.tags[f"yeoron.{name}"] == named[name]
    for asked in ("params.model = 'sgns'", "tags.`yeoron.model` = 'sgns'"):
        places = [one.experiment_id for one in client.search_experiments()]
        found = client.search_runs(places, f"{asked} and params.compression = 'onebit'")
        assert {run.info.run_id for run in found} == alike
    version = client.get_model_version("yeoron", tracked.model_version)
    assert version.tags["yeoron.model"] == "sgns"


def test_what_an_older_manifest_does_not_know_is_left_out(store, make, uri):
    older = replace(make(), config={"sync": {"policy": "asp"}, "dim": 8}, tokens={})
    tracked = track(store, store.publish(older).id, tracking_uri=uri, device="cpu")
    data = runs.connect(uri).get_run(tracked.run_id).data
    assert (data.params["policy"], data.params["dim"]) == ("asp", "8")
    unknown = {"model", "compression", "topology", "tokenizer", "nodes", "source_mix"}
    assert not {*unknown, "corpus_digest"} & data.params.keys()
    assert not {f"yeoron.{name}" for name in unknown} & data.tags.keys()


def test_a_server_that_is_not_there(store, make, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    address = f"http://user:secret@127.0.0.1:{lasting_port()}"
    store.publish(make())
    with pytest.raises(PlatformError, match=r"MLflow at http://127\.0\.0\.1") as caught:
        track(store, tracking_uri=address, device="cpu")
    assert str(caught.value).endswith(
        "it does not answer: is the platform running (`yeoron status`)?"
    )
    assert "secret" not in str(caught.value)


def test_a_deleted_experiment_is_named(store, make, uri):
    store.publish(make())
    client = runs.connect(uri)
    client.delete_experiment(client.create_experiment("지움"))
    with pytest.raises(ConfigError, match="'지움' was deleted"):
        track(store, tracking_uri=uri, experiment="지움", device="cpu")


def test_names_that_mlflow_would_refuse():
    assert runs.metric_name("nll/뉴스 (속보)!") == "nll/뉴스 _속보__"
    assert runs.metric_name("") == "_"
    assert recording.flatten({"a": {"b": {"c": 1}}, "d": [2]}) == {"a.b.c": 1, "d": [2]}


def test_mlflow_is_not_imported_with_the_module():
    program = (
        "import sys, embedding_airflow.tracking.snapshots, embedding_airflow.tracking.comparison;"
        "print([m for m in ('mlflow', 'matplotlib') if m in sys.modules])"
    )
    root = Path(__file__).parents[2]
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, "PYTHONPATH": f"{root}:{root / 'plugins'}"},
    )
    assert ran.stdout.strip() == "[]"


@pytest.fixture(scope="module")
def server(database: Path, tmp_path_factory: pytest.TempPathFactory):
    """MLflow as the platform serves it, for all tests that need one: its address with the login."""
    folder = tmp_path_factory.mktemp("server")
    port = lasting_port()
    settings = folder / "yeoron.toml"
    settings.write_text(f'[paths]\nhome = "{folder}"\n[ports]\nmlflow = {port}\n')
    for name in ("airflow", "mlflow"):
        (folder / name).mkdir()
    shutil.copy(database, folder / "mlflow" / "mlflow.db")
    (folder / "airflow" / "passwords.json").write_text(f'{{"{USER}": "{PASSWORD}"}}')
    command = [sys.executable, "-m", "embedding.cli", "--settings", str(settings), "mlflow"]
    log = (folder / "server.log").open("w")
    process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        _wait(f"http://127.0.0.1:{port}/health", process, 240)
        yield f"http://{USER}:{PASSWORD}@127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=300)
        log.close()


def _wait(url: str, process: subprocess.Popen[bytes], seconds: float) -> None:
    def answers() -> bool:
        assert process.poll() is None, "mlflow server ended"
        try:
            with urllib.request.urlopen(url, timeout=2):
                return True
        except OSError:
            return False

    until(answers, "mlflow server did not start", seconds)


@pytest.mark.slow
def test_the_address_that_is_given_opens_on_the_runs(store, make, server, tmp_path_factory):
    """Also before the first run: the experiment is made then, once, for models of one's own."""
    from embedding.platform.addresses import experiment_url
    from embedding.settings import Settings

    port = int(server.rpartition(":")[2])
    home = tmp_path_factory.getbasetemp() / "server0"
    settings = Settings(
        paths={"home": home}, ports={"mlflow": port}, evaluation={"experiment": "여론"}
    )
    url = experiment_url(settings)
    assert experiment_url(settings) == url
    store.publish(make())
    tracked = track(store, tracking_uri=server, experiment="여론")
    view = f"viewStateShareKey={views.SNAPSHOTS_VIEW}"
    assert url == f"{settings.mlflow_url}/#/experiments/{tracked.experiment_id}/runs?{view}"
    experiment = runs.connect(server).get_experiment(tracked.experiment_id)
    assert experiment.tags[recording.EXPERIMENT_KIND] == recording.KIND_OF_OURS
    away = Settings(ports={"mlflow": lasting_port()})
    assert experiment_url(away) == away.mlflow_url


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(CHROMIUM is None, reason="needs a Chromium")
def test_mlflow_shows_the_columns_and_charts_of_a_view(store, make, server):
    """In its own pages: the form of a view is MLflow's, and nothing else says that it fits."""
    from playwright.sync_api import expect, sync_playwright

    tracked = track(store, store.publish(make()).id, tracking_uri=server, device="cpu")
    parent = comparison.start_parent("비교", {}, tracking_uri=server, varied=["policy", "dim"])
    for dim in (8, 16):
        figures = dict.fromkeys(views.MEASURED, float(dim))
        given = {"policy": "bsp", "dim": dim}
        comparison.track_training(parent, given, figures, None, tracking_uri=server, seconds=3)
    place = runs.connect(server).get_run(parent).info.experiment_id
    shown = {
        views.address(tracked.experiment_id, views.SNAPSHOTS_VIEW): (
            "gate",
            "nll",
            "window",
            "policy",
        ),
        views.address(place, parent): ("nll", "policy", "dim", "policy=bsp dim=16"),
        views.address(place, parent, charts=True): ("Parallel Coordinates", "policy=bsp dim=8"),
    }
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS], timeout=PATIENCE)
        login = {"username": USER, "password": PASSWORD}
        page = browser.new_page(viewport={"width": 2_400, "height": 900}, http_credentials=login)
        page.set_default_timeout(PATIENCE)
        refused: list[str] = []
        page.on("response", lambda one: refused.append(one.url) if one.status >= 400 else None)
        for address, texts in shown.items():
            _open_view(page, server.replace(f"{USER}:{PASSWORD}@", "") + address, texts[0])
            for text in texts:
                expect(page.get_by_text(text, exact=True).first).to_be_visible(timeout=PATIENCE)
        asked = {url.partition("/mlflow/")[2].split("?")[0] for url in refused}
        assert asked <= {
            "gateway-proxy",
            "users/current",
            "assistant/config",
            "assistant/providers",
        }, "a page needs a route that is not served"
        browser.close()


def _open_view(page: Any, address: str, text: str) -> None:
    """Open a view, again where the browser could not load one of MLflow's scripts.

    MLflow answers that with a page "Something went wrong", as on a busy machine: its script is
    asked for once. A view that MLflow cannot read looks otherwise: the usual list.
    """
    for _ in range(3):
        page.goto("about:blank")
        page.goto(address)
        failed = page.get_by_role("heading", name="Something went wrong")
        failed.or_(page.get_by_text(text, exact=True).first).first.wait_for(timeout=PATIENCE)
        if not failed.is_visible():
            return


@pytest.mark.slow
def test_over_a_real_server(store, make, gold, server, monkeypatch):
    ref = store.publish(make())
    given = {"tracking_uri": server, "gold": gold, "device": "cpu", "experiment": "여론"}
    tracked = track(store, ref.id, **given)
    assert track(store, ref.id, **given) == tracked
    client = runs.connect(server)
    manifest = client.download_artifacts(tracked.run_id, "manifest.json")
    assert json.loads(Path(manifest).read_text())["id"] == ref.id
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server)
    mlflow.set_tracking_uri(None)
    model = mlflow.pyfunc.load_model("models:/yeoron@latest")
    assert list(model.predict(["왕"], params={"n": 1}).neighbour) == [
        store.open().neighbours("왕", 1)[0][0]
    ]
