"""The quality gate: floors, what they are pinned to, and which alias may name what."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.evaluation import gate
from embedding.evaluation.gate import QualityBound, judge, pin, read_floors, written
from embedding.kernel.errors import InputError

CORPUS, OTHER = "a" * 64, "b" * 64
values = st.floats(-1e6, 1e6, allow_nan=False)


def test_a_figure_below_its_floor_fails_with_both_numbers():
    floors = (
        QualityBound(metric="similarity/ws", at_least=0.5),
        QualityBound(metric="nll", at_most=2.5),
    )
    good = judge({"similarity/ws": 0.5, "nll": 2.5}, floors, corpus=None)
    assert good.passed
    bad = judge({"similarity/ws": 0.49, "nll": 2.6}, floors, corpus=None)
    assert bad.failed == (
        "similarity/ws is 0.49, below the floor of 0.5",
        "nll is 2.6, above the ceiling of 2.5",
    )


def test_a_figure_that_could_not_be_had_fails():
    verdict = judge({}, (QualityBound(metric="nll", at_most=2.5),), corpus=None)
    assert verdict.failed == ("nll could not be measured, and a floor asks for it",)


def test_a_floor_of_another_corpus_is_left_aside():
    floors = (QualityBound(metric="nll", at_most=2.5, corpus=CORPUS),)
    assert not judge({"nll": 9.0}, floors, corpus=CORPUS).passed
    for corpus, what in ((OTHER, OTHER[:12]), (None, "a stream")):
        verdict = judge({"nll": 9.0}, floors, corpus=corpus)
        assert verdict.passed
        (said,) = verdict.aside
        assert said == f"nll: its floor was measured on corpus {CORPUS[:12]}, not {what}"


def test_a_floor_of_another_gold_file_is_left_aside(tmp_path: Path):
    file = tmp_path / "ws.tsv"
    file.write_text("왕\t여왕\t8\n", encoding="utf-8")
    pinned = pin({"similarity/ws": 0.6}, corpus=None, gold=[file], margin=0.1)
    assert [floor.at_least for floor in pinned] == [0.54]
    assert not judge({"similarity/ws": 0.1}, pinned, corpus=None, gold=[file]).passed
    file.write_text("왕\t여왕\t9\n", encoding="utf-8")
    verdict = judge({"similarity/ws": 0.1}, pinned, corpus=None, gold=[file])
    assert verdict.passed
    assert verdict.aside[0].startswith("similarity/ws: its floor was measured with gold file")


@pytest.mark.parametrize(("now", "passed"), [(2.75, True), (2.76, False)])
def test_a_loss_may_rise_by_so_much_and_no_more(now: float, passed: bool):
    verdict = judge({"nll": now}, (), corpus=None, before={"nll": 2.5}, max_rise=0.1)
    assert verdict.passed is passed
    assert judge({"nll": now}, (), corpus=None, before={"nll": 2.5}, max_rise=None).passed
    assert judge({"nll": now}, (), corpus=None, before={}, max_rise=0.1).passed


@given(
    st.dictionaries(
        st.sampled_from(["nll", "similarity/ws", "analogy/an", "analogy/an/part", "words"]), values
    ),
    st.floats(0, 1),
    st.sampled_from([None, CORPUS]),
)
def test_what_was_pinned_is_kept_and_read_back(tmp_path_factory, metrics, margin, corpus):
    folder = tmp_path_factory.mktemp("floors")
    gold = [folder / "ws.tsv", folder / "an.txt"]
    for file in gold:
        file.write_text(file.name)
    if not metrics.keys() & {"nll", "similarity/ws", "analogy/an"}:
        with pytest.raises(InputError, match="--gold names files"):
            pin(metrics, corpus=corpus, gold=gold, margin=margin)
        return
    floors = pin(metrics, corpus=corpus, gold=gold, margin=margin)
    (folder / "floors.toml").write_text(written(floors), encoding="utf-8")
    assert read_floors(folder / "floors.toml") == floors
    assert {floor.metric for floor in floors} <= {"nll", "similarity/ws", "analogy/an"}
    # Floors are written with six digits.
    eased = {m: v - 1e-5 * abs(v) if m == "nll" else v + 1e-5 * abs(v) for m, v in metrics.items()}
    assert judge(eased, floors, corpus=corpus, gold=gold).passed


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[[floor]\n", "it is not TOML"),
        ("[[floor]]\nmetric = 'nll'\n", "one of at_least and at_most is needed"),
        ("[[floor]]\nmetric = 'nll'\nat_most = 1\nat_least = 0\n", "and not both"),
        ("[[floor]]\nmetric = 'nll'\nat_most = nan\n", "at_most"),
        ("[[floor]]\nmetric = 'nll'\nat_most = 1\ncorpus = 'xyz'\n", "corpus"),
        ("[[flor]]\nmetric = 'nll'\n", "flor"),
    ],
)
def test_a_wrong_floors_file_is_one_sentence(tmp_path: Path, content: str, said: str):
    path = tmp_path / "floors.toml"
    path.write_text(content)
    with pytest.raises(InputError, match=said) as caught:
        read_floors(path)
    assert str(path) in str(caught.value)
    with pytest.raises(InputError, match="there is no such file"):
        read_floors(tmp_path / "none.toml")


def test_losses_are_better_when_lower():
    assert gate.better("nll", 1.0, 2.0)
    assert gate.better("nll/뉴스", 1.0, 2.0)
    assert gate.better("similarity/ws", 2.0, 1.0)


def test_a_model_that_cannot_be_read_does_not_pass_though_no_floor_is_broken() -> None:
    figures = {"mean_cosine": 0.98, "first_axis": 0.98, "words_read": 40_000.0}
    verdict = gate.judge(figures, (), corpus=None)
    assert not verdict.passed
    assert verdict.failed == ()
    assert "about 10,000 more words are needed" in verdict.unread
    assert verdict.reasons == (verdict.unread,)
    assert gate.judge({**figures, "mean_cosine": 0.2, "first_axis": 0.2}, (), corpus=None).passed


def test_a_snapshot_without_the_use_of_words_passes_no_gate() -> None:
    lacks = ("2020-02: no word can be judged, as a node was lost.",)
    verdict = gate.judge({"nll": 2.5}, (), corpus=None, lacks=lacks)
    assert not verdict.passed
    assert verdict.reasons == lacks
    assert verdict.failed == (), "nothing went wrong with its vectors"
