"""How far two trainings call the same words."""

from __future__ import annotations

from benchmarks.trainings import agreement, main, with_shares


def test_words_that_both_call_are_counted() -> None:
    one = {"방": 0.001, "거리": 0.04, "온라인": 0.05, "말": 0.9, "이": 0.07}
    other = {"방": 0.002, "거리": 0.08, "온라인": 0.3, "말": 0.01, "이": 0.06}
    found = with_shares(agreement(one, other))
    assert (found["one"], found["other"], found["either"], found["both"]) == (3, 2, 4, 1)
    assert found["both, at twice the q"] == 2
    assert (found["of either"], found["of a training's"]) == (0.25, 0.4)


def test_where_nothing_is_called_there_is_no_share() -> None:
    assert with_shares(agreement({"말": 0.9}, {}))["of either"] is None


def test_a_folder_that_is_not_there_is_named(tmp_path, capsys) -> None:
    assert main([str(tmp_path), str(tmp_path / "none")]) == 2
    assert "none: no store" in capsys.readouterr().err
