"""What a team shares is kept, limited, and gone when it is erased."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from embedding.kernel.errors import KeyedError, SnapshotError
from embedding.show.notifying import NotifyConfig
from embedding.show.team import (
    LONGEST_NOTE,
    MOST_SHARED_WORDS,
    TeamShared,
    TeamStore,
    with_team,
)


@pytest.fixture
def team(tmp_path: Path) -> TeamStore:
    return TeamStore(tmp_path / "deep" / "team.json")


def test_words_and_notes_are_there_for_the_next_reader(team: TeamStore) -> None:
    assert team.read() == TeamShared()
    team.watch("마스크", "가람", alert=False)
    team.watch("코로나", "나래", alert=True)
    team.watch("마스크", "나래", alert=True)
    team.note("word", "마스크", "첫 줄\r\n둘째 줄\x00", "가람")
    team.note("window", "2020-03", "이번 달", "나래")
    held = TeamStore(team.path).read()
    assert [(one.word, one.alert, one.who) for one in held.words] == [
        ("코로나", True, "나래"),
        ("마스크", True, "나래"),
    ]
    (note,) = held.notes_on("word", "마스크")
    assert note.text == "첫 줄\n둘째 줄"
    assert held.notes_on("window", "마스크") == ()
    team.unwatch("마스크")
    assert team.read().watched("마스크") is None


def test_a_named_person_removes_their_own_notes_alone(team: TeamStore) -> None:
    team.note("word", "가", "하나", "가람")
    (note,) = team.read().notes
    team.remove_note(note.id, "나래")
    assert team.read().notes == (note,)
    team.remove_note(note.id, "가람")
    assert team.read().notes == ()
    team.note("word", "가", "둘", "가람")
    team.remove_note(team.read().notes[0].id, None)
    assert team.read().notes == ()


@pytest.mark.parametrize(
    ("kind", "about", "text", "who", "key"),
    [
        ("word", "가", " \n ", "가람", "note_empty"),
        ("word", "가", "나" * (LONGEST_NOTE + 1), "가람", "note_long"),
        ("word", "", "나", "가람", "team_word"),
        ("word", "가" * 201, "나", "가람", "team_word"),
        ("word", "가", "나", "", "team_name"),
        ("word", "가", "나", "다" * 41, "team_name"),
        ("story", "가", "나", "가람", "bad_address"),
    ],
)
def test_what_cannot_be_kept_is_named_and_changes_nothing(
    team: TeamStore, kind: str, about: str, text: str, who: str, key: str
) -> None:
    with pytest.raises(KeyedError) as error:
        team.note(kind, about, text, who)
    assert error.value.key == key
    assert not team.path.exists()


def test_the_list_has_an_end(team: TeamStore) -> None:
    words = [
        {"word": f"말{n}", "alert": False, "who": "a", "at": ""} for n in range(MOST_SHARED_WORDS)
    ]
    team.path.parent.mkdir(parents=True)
    team.path.write_text(json.dumps({"words": words, "notes": []}))
    with pytest.raises(KeyedError, match="200 words"):
        team.watch("하나 더", "가람", alert=False)
    team.watch("말3", "가람", alert=True)


def test_changes_at_one_time_are_all_kept(team: TeamStore) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: team.note("word", "가", str(n), "가람"), range(40)))
    assert sorted(int(one.text) for one in team.read().notes) == list(range(40))


def test_alerts_are_in_every_notice(team: TeamStore) -> None:
    team.watch("마스크", "가람", alert=True)
    team.watch("코로나", "가람", alert=False)
    config = with_team(NotifyConfig(words=("배",)), team)
    assert config.words == ("배", "마스크")
    assert (config.attach, config.attach_quiet) == ("none", False)


def test_the_report_of_each_window_is_mailed_as_the_team_says(team: TeamStore) -> None:
    team.note("word", "코로나", "둘", "가람")
    team.mail_report("html", "en", "가람")
    config = with_team(NotifyConfig(attach="pdf"), team)
    assert (config.attach, config.attach_language, config.attach_quiet) == ("html", "en", True)
    team.erase("코로나")
    assert team.read().report.who == "가람", "what else changes leaves it"
    for given in ({"format": "exe", "who": "가람"}, {"format": "pdf", "who": ""}):
        with pytest.raises(KeyedError):
            team.mail_report(language="ko", **given)
    team.mail_report("none", "ko", "")
    assert team.read().report is None
    assert with_team(NotifyConfig(attach="pdf"), team).attach == "pdf"


def test_a_word_is_erased_with_what_was_noted_of_it(team: TeamStore) -> None:
    team.watch("마스크", "가람", alert=True)
    team.note("word", "마스크", "하나", "가람")
    team.note("window", "2020-03", "마스크가 늘었다", "가람")
    team.note("word", "코로나", "둘", "가람")
    assert team.erase("마스크", dry=True) == 3
    assert team.erase("마스크") == 3
    assert "마스크" not in team.path.read_text()
    assert [one.about for one in team.read().notes] == ["코로나"]


def test_a_damaged_file_is_named_and_not_replaced(team: TeamStore) -> None:
    team.path.parent.mkdir(parents=True)
    team.path.write_text("{cut off")
    with pytest.raises(SnapshotError, match="cannot be read"):
        team.watch("가", "가람", alert=False)
    assert team.path.read_text() == "{cut off"
