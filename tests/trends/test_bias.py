"""The bias figure and the weights it proposes, on snapshots whose losses are known."""

from __future__ import annotations

import json
import os
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from embedding.cli import app
from embedding.evaluation.evaluate import evaluate_snapshot
from embedding.kernel.errors import InputError
from embedding.snapshots.store import SnapshotStore
from embedding.trends import storage
from embedding.trends.bias import source_bias
from embedding.trends.config import TrendsConfig
from embedding.trends.report import build_report
from embedding.trends.rows import TrendReport

LOSSES = {"뉴스": 2.0, "게시판": 2.6, "댓글": 2.1}


@pytest.fixture(scope="module")
def uneven(planted, tmp_path_factory) -> SnapshotStore:
    """Three windows in which the board is foreseen worst."""
    store, parent = SnapshotStore(tmp_path_factory.mktemp("uneven")), None
    for at, data in enumerate(planted.stream(planted.Plan(windows=3, fillers=60))):
        quality = {f"nll.{name}": loss - 0.1 * at for name, loss in LOSSES.items()}
        quality["nll"] = 2.2 - 0.1 * at
        parent = store.publish(replace(data, parent=parent, quality=quality)).id
    return store


def test_the_worst_source_is_named_in_report_evaluation_and_answer(uneven) -> None:
    found = source_bias(uneven)
    assert found.bias.source == "게시판"
    assert found.bias.excess == pytest.approx(0.4)
    assert [row.source for row in found.sources] == ["게시판", "댓글", "뉴스"]
    assert [round(w.bias.excess, 6) for w in found.windows if w.bias] == [0.4, 0.4, 0.4]
    report = build_report(uneven)
    assert report.bias == found.bias
    assert TrendReport.from_dict(json.loads(storage.dumps(report))).bias.source == "게시판"
    assert evaluate_snapshot(uneven.open()).metrics["bias"] == pytest.approx(0.4)


def test_weights_rise_with_the_loss_and_keep_the_learning_rate(uneven) -> None:
    gentle = TrendsConfig().model_copy(update={"bias_step": 1.0})
    rows = {row.source: row for row in source_bias(uneven, gentle).sources}
    assert rows["게시판"].proposed > 1.0 > rows["댓글"].proposed > rows["뉴스"].proposed
    assert sum(row.share * row.proposed for row in rows.values()) == pytest.approx(1.0, abs=2e-3)
    again = source_bias(uneven, gentle, weights={"게시판": rows["게시판"].proposed})
    assert again.sources[0].proposed > rows["게시판"].proposed


def test_a_broken_snapshot_before_it_is_passed_over(uneven, tmp_path: Path) -> None:
    shutil.copytree(uneven.uri, tmp_path / "store")
    store = SnapshotStore(tmp_path / "store")
    os.truncate(tmp_path / "store" / store.list()[0].id / "counts.arrow", 10)
    labels = [window.label for window in source_bias(uneven).windows]
    assert [window.label for window in source_bias(store).windows] == labels[1:]


def test_weights_stay_within_bounds(uneven) -> None:
    for row in source_bias(
        uneven, TrendsConfig().model_copy(update={"bias_step": 100.0, "bias_most": 3.0})
    ).sources:
        assert 1 / 3 - 1e-3 <= row.proposed <= 3.0


def test_weights_that_the_nodes_told_of_go_before_those_of_the_settings(planted, tmp_path) -> None:
    store, parent = SnapshotStore(tmp_path), None
    told = {"weight.게시판": 2.0, "weight.뉴스": 0.5, "weight.댓글": 0.5}
    for at, data in enumerate(planted.stream(planted.Plan(windows=3, fillers=20))):
        quality = {f"nll.{name}": loss + 0.1 * at for name, loss in LOSSES.items()}
        quality |= {"nll": 2.2 + 0.1 * at} | (told if at == 2 else {})
        parent = store.publish(replace(data, parent=parent, quality=quality)).id
    found = source_bias(store, weights={"게시판": 1.5})
    assert {row.source: row.weight for row in found.sources}["게시판"] == 2.0
    assert found.returning
    assert found.measured is not None
    assert found.measured > found.limit
    assert evaluate_snapshot(store.open()).metrics["weight/게시판"] == 2.0


def test_losses_of_one_source_or_of_none_are_a_sentence(planted, tmp_path: Path) -> None:
    store = planted.make_store(str(tmp_path), planted.Plan(windows=1, fillers=20))
    with pytest.raises(InputError, match="at least two sources; scored were: none"):
        source_bias(store)
    assert build_report(store).bias is None


def test_the_command_prints_a_setting_that_can_be_pasted(uneven) -> None:
    said = CliRunner().invoke(app, ["trends", "bias", "--snapshots", str(uneven.uri)])
    assert said.exit_code == 0
    text = " ".join(said.output.split())
    assert "게시판 is served worst: 0.400 nats above the mean" in text
    assert "Predicted rise of the mean by what is proposed: +" in text
    pasted = tomllib.loads(said.output.splitlines()[-1])["node"]["source_weights"]
    assert pasted == {row.source: row.proposed for row in source_bias(uneven).sources}
    assert "(at most 1.0% is allowed)" in text
    found = CliRunner().invoke(app, ["trends", "bias", "--snapshots", str(uneven.uri), "--csv"])
    lines = found.output.splitlines()
    assert lines[0] == "source,loss,excess,tokens,share,weight,proposed"
    assert lines[1].startswith("게시판,2.4,0.4,")
