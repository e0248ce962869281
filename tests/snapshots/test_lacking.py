"""What a snapshot lacks: the true reason, the month's name and what to do, from one place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from embedding.kernel.records import SnapshotRef
from embedding.snapshots.format import LACK_REASONS, Missing, make_manifest, sentence

SERVER = {"server": {"usage": True}}


def manifest_of(data, *missing: Missing):
    return make_manifest(data, {}).model_copy(update={"missing": missing})


@pytest.mark.parametrize("reason", LACK_REASONS)
def test_every_reason_names_the_month_and_most_say_what_to_do(reason: str) -> None:
    one = Missing(part="usage", reason=reason, where=("node-1", "node-2"), documents=1_234)
    said = sentence(one, "2021-04")
    assert said.startswith("2021-04: ")
    assert said.endswith(".")
    assert "`yeoron snapshot amend 2021-04`" in said or "server.convergence_seconds" in said
    bare = sentence(Missing(part="usage", reason=reason), "2021-04")
    assert "{" not in bare
    if reason in ("usage_not_handed_in", "node_lost"):
        assert "node-1, node-2" in said
        assert "its nodes" in bare
    if reason in ("document_gone", "late_documents"):
        assert "1,234" in said
        assert "some " in bare


def test_a_reason_of_a_newer_server_is_named_as_it_is() -> None:
    said = sentence(Missing(part="documents", reason="moon_phase"), "2021-04")
    assert "lacks documents (moon_phase)" in said


def test_the_manifest_says_it_and_so_does_the_reference(make) -> None:
    lost = Missing(part="usage", reason="node_lost", where=("node-1",), documents=7)
    late = Missing(part="documents", reason="late_documents", documents=3)
    manifest = manifest_of(make(), lost, late)
    assert manifest.lacking == (lost, late)
    assert not manifest.judgeable
    assert manifest_of(make(), late).judgeable
    ref = manifest.ref("somewhere")
    assert ref.lacks == tuple(sentence(one, "2020-02") for one in (lost, late))
    assert len(ref.lacks) == 2
    assert SnapshotRef.from_dict(ref.to_dict()) == ref
    old = {k: v for k, v in ref.to_dict().items() if k not in ("lacks", "revision")}
    assert SnapshotRef.from_dict(old).lacks == ()


@pytest.mark.parametrize(
    ("quality", "config", "parts"),
    [
        ({"settled": 0.0}, SERVER, ["usage", "learning"]),
        ({"settled": 0.0}, {"server": {"usage": False}}, ["learning"]),
        ({"settled": 0.0}, {}, ["learning"]),
        ({"settled": 1.0}, SERVER, []),
        ({}, SERVER, []),
    ],
)
def test_an_older_snapshot_says_it_by_its_figures_and_files(make, quality, config, parts) -> None:
    manifest = manifest_of(replace(make(), quality=quality, config=config))
    assert [one.part for one in manifest.lacking] == parts
    with_usage = manifest.model_copy(update={"files": {"usage.arrow": {"size": 1, "sha256": ""}}})
    assert with_usage.judgeable
