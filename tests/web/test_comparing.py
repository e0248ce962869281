"""The pages that compare, the map, the watch list, the evidence: what they say and refuse."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from html import unescape
from urllib.parse import quote, urlencode

import pytest
from unguarded import unguarded

from embedding.ask.answers import LaterError
from embedding.ask.config import AxisConfig
from embedding.ask.questions import DisagreementQuestion
from embedding.snapshots.store import SnapshotStore
from embedding.web.config import WebConfig
from waiting import until

MONTHS = ("2019-11", "2019-12", "2020-01", "2020-02", "2020-03")


def get(client, path, status=200, **query):
    answer = client.get(path + ("?" + urlencode(query, doseq=True) if query else ""))
    assert answer.status_code == status, answer.text[:400]
    return answer.text


def ids(config) -> list[str]:
    return [ref.id for ref in SnapshotStore(config.snapshots).list()]


def held(html: str, name: str) -> dict:
    """What a box holds in its attribute `name`."""
    start = html.index(f'{name}="') + len(name) + 2
    return json.loads(unescape(html[start : html.index('"', start)]))


def test_two_words_share_neighbours_and_have_a_cosine(client):
    html = get(client, "/compare", a="확진", b="감염")
    assert "둘 다 가까움" in html
    nearness = html[html.index('data-name="nearness"') :]
    values = held(nearness, "data-chart")["lines"][0]["values"]
    assert len(values) == 5
    assert all(0.3 < value <= 1 for value in values)


def test_two_words_come_as_csv(client):
    html = unescape(get(client, "/compare", a="확진", b="감염"))
    link = f"/compare.csv?{urlencode({'a': '확진', 'b': '감염'})}"
    assert f'href="{link}"' in html
    rows = list(csv.DictReader(io.StringIO(client.get(link).text.lstrip("\ufeff"))))
    assert [row["window"] for row in rows] == [*MONTHS]
    assert {(row["first"], row["second"]) for row in rows} == {("확진", "감염")}
    point = json.loads(get(client, f"/api/word/{quote('감염')}"))["points"][-1]
    assert int(rows[-1]["documents_second"]) == point["documents"] > 0
    assert float(rows[-1]["per_1000_second"]) == pytest.approx(point["per_1000_documents"])
    assert 0.3 < float(rows[-1]["cosine"]) <= 1
    assert ".csv" not in get(client, "/compare")
    for path in ("/compare.csv?a=코로나&b=쀍쀍", "/word.csv?w=쀍쀍"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert "‘쀍쀍’에 대한 자료가 없습니다" in answer.text


def test_a_word_to_compare_that_is_unknown_or_missing(client):
    assert "첫 번째 낱말" in get(client, "/compare")
    assert "자료가 없습니다" in get(client, "/compare", 404, a="코로나", b="쀍쀍")
    # A slip of the pen keeps the other word: the right spelling is one press away.
    html = get(client, "/compare", 404, a="코로니", b="마스크")
    assert f"/compare?a={quote('코로나')}&amp;b={quote('마스크')}" in html
    assert html.count('role="note"') == 1


def test_an_error_is_told_in_the_readers_language_with_the_sentence_as_detail(client, config):
    first, last = (SnapshotStore(config.snapshots).list()[at].id for at in (0, -1))
    for path, status, values, detail in (
        ("/windows/moved.csv", 400, {"then": last, "now": first}, "the earlier window comes first"),
        ("/compare.csv", 422, {"a": "코로나"}, "Field required"),
    ):
        html = get(client, path, status, **values)
        assert "이 주소의 값으로는 보여 줄 것이 없습니다" in html
        told = html.partition('<span lang="en">')[2].partition("</span>")[0]
        assert detail in told


def test_two_windows_begin_with_one_whose_model_can_be_read(planted, tmp_path, client_of):
    store, parent, found = SnapshotStore(tmp_path), None, []
    for at, data in enumerate(planted.stream(planted.Plan(windows=3, fillers=60))):
        quality = {"mean_cosine": 0.99, "words_read": 9_000.0} if at == 0 else {}
        parent = store.publish(replace(data, parent=parent, quality=quality)).id
        found.append(parent)
    with client_of(unguarded(WebConfig(snapshots=str(tmp_path)))) as client:
        html = get(client, "/windows")
    assert f'value="{found[0]}" selected' not in html
    assert html.count(f'value="{found[1]}" selected') == 1


def test_any_two_windows_are_compared_and_come_as_csv(client, config):
    first, *_, before, last = ids(config)
    html = get(client, "/windows", then=before, now=last)
    assert "코로나" in html
    assert "2020년 2월" in html
    text = get(client, "/windows/moved.csv", then=before, now=last)
    assert next(csv.DictReader(io.StringIO(text.lstrip("\ufeff"))))["word"] == "코로나"
    html = get(client, "/windows", then=first, now=last)
    assert "이웃한 달 사이에서만" in html
    assert "신천지" in html, "what came up shows between any two"
    assert "2019-11 2019-12" in get(client, "/windows/moved.csv", 400, then=first, now=last)
    assert "신천지" in get(client, "/windows/born.csv", then=first, now=last)
    assert "2019년 11월</span> <span" in get(client, "/windows", then=last, now=first)
    same = get(client, "/windows", then=last, now=last)
    assert "같은 달을 두 번 골랐습니다" in same
    assert same.count("selected") == 2
    assert "none of that id" in get(client, "/windows", 404, then="2031-01-abcdef01", now=last)


def test_what_two_sources_use_differently(client, config):
    html = get(client, "/sources", a="뉴스", b="게시판")
    clear = html[html.index('id="contrast"') :]
    assert clear.index("배</a>") < clear.index("<details>")
    text = get(client, "/sources.csv", a="뉴스", b="게시판")
    assert next(csv.DictReader(io.StringIO(text.lstrip("\ufeff"))))["word"] == "배"
    assert "‘없음’에서 읽은 것이 없습니다" in get(client, "/sources", a="뉴스", b="없음")
    assert "같은 출처를 두 번" in get(client, "/sources", a="뉴스", b="뉴스")
    found = json.loads(get(client, "/api/contrast", a="뉴스", b="게시판"))
    assert found["rows"][0]["word"] == "배"


def test_the_brief_compares_each_source_with_all_others(client):
    html = get(client, "/")
    if "data-later=" in html:
        later = html[html.index("data-later=") :].split('"')[1]
        while client.get(later).status_code == 202:  # it waits for the answer itself
            pass
        html = get(client, "/")
    html = unescape(html)
    section = html[html.index('id="disagree"') :]
    section = section[: section.index("</section>")]
    assert "하나씩 나머지 모두와 비교했습니다" in section
    assert section.count('class="row-head"') == 1, "one word differs"
    assert "배</a>" in section
    assert '<span class="tag" dir="auto">게시판</span>' in section
    assert '<span class="tag" dir="auto">나머지 출처</span>' in section
    assert "게시판에서 ‘배’를 다른 출처와 가장 다르게 씁니다." in html


def test_the_brief_says_that_the_difference_of_sources_is_being_computed(
    client_of, config, monkeypatch
):
    def still_computing(*_: object) -> None:
        raise LaterError

    monkeypatch.setattr(DisagreementQuestion, "answer", still_computing)
    late = client_of(unguarded(config))
    late.headers["accept-language"] = "ko"
    html = unescape(get(late, "/"))
    assert "출처마다 어떻게 다르게 쓰는지 분석하고 있습니다" in html
    section = html[html.index("data-later=") :].split('"')[1]
    assert section.endswith("/disagreement")
    assert late.get(section).status_code == 202


def test_the_source_that_is_served_worst_and_weights_for_it(client):
    html = get(client, "/snapshots")
    section = html[html.index('aria-labelledby="bias"') :]
    section = section[: section.index("</section>")]
    assert "게시판의 예측 오차가 가장 큽니다" in section
    assert "0.250 높습니다" in section
    assert "바뀔 것으로 예상합니다(한도 1 %)" in section
    found = json.loads(get(client, "/api/bias"))
    assert [row["source"] for row in found["sources"]] == ["게시판", "댓글", "뉴스"]
    assert found["sources"][0]["proposed"] > 1 > found["sources"][2]["proposed"]


def test_the_map_has_every_window_and_keeps_places_between_them(client):
    data = held(get(client, "/map", w="확진"), "data-map")
    assert len(data["windows"]) == 5
    low_x, high_x, low_y, high_y = data["bounds"]
    for window in data["windows"]:
        assert sum(place["near"] for place in window["places"]) == 12
        for place in window["places"]:
            assert low_x <= place["x"] <= high_x
            assert low_y <= place["y"] <= high_y
    a, b = ({p["word"]: p for p in window["places"]} for window in data["windows"][-2:])
    common = [word for word in a if word in b]
    moved = [abs(a[w]["x"] - b[w]["x"]) + abs(a[w]["y"] - b[w]["y"]) for w in common]
    assert sum(moved) / len(moved) < 0.5
    get(client, "/map", 404, w="쀍쀍")
    get(client, "/map", 422)


def test_the_watch_list_is_an_address(client):
    html = get(client, "/watch", w=["마스크", "코로나", "없는말"])
    assert html.count('scope="row"') == 3
    assert "늘어난 말" in html
    assert "의미가 달라진 말" in html
    assert "쓰인 적이 없음" in html
    assert f"/watch?{urlencode([('w', '마스크'), ('w', '코로나')])}" in unescape(html)
    assert "마스크" in get(client, "/watch")
    assert "24개까지" in get(client, "/watch", w=[f"없는말{n}" for n in range(30)])


def unpoled(client_of, config, language: str) -> str:
    """What is said where no word of one end is used."""
    axes = (AxisConfig(name="odd", positive=("없는말",), negative=("나쁘다",)),)
    odd = client_of(unguarded(config.model_copy(update={"axes": axes})))
    odd.headers["accept-language"] = language
    found = json.loads(get(odd, "/api/axis", 400, w="코로나", name="odd"))
    assert "none of 없는말" in found["error"]
    return found["sentence"]


def test_the_axis_follows_the_word_and_says_how_sure_it_is(client, client_of, config):
    (sentiment,) = config.axes
    found = json.loads(get(client, "/api/axis", w="코로나", name="sentiment"))
    overall = found["chart"]["lines"][-1]
    assert overall["values"][0] > 0.4
    assert overall["values"][-1] < -0.4
    assert overall["low"][-1] < overall["values"][-1] < overall["high"][-1]
    assert "부정적인 말과 더 비슷하게" in found["sentence"]
    english = {"accept-language": "en"}
    asked = client.get("/api/axis", params={"w": "코로나", "name": "sentiment"}, headers=english)
    assert "Used more like the negative words." in asked.json()["sentence"]
    tone = AxisConfig(name="tone", positive=sentiment.positive, negative=sentiment.negative)
    named = client_of(unguarded(config.model_copy(update={"axes": (tone,)})))
    asked = json.loads(get(named, "/api/axis", w="코로나", name="tone"))
    assert "−1 쪽" in asked["sentence"]
    single = AxisConfig(name="tone", positive=("좋다",), negative=("나쁘다", "최악"))
    named = client_of(unguarded(config.model_copy(update={"axes": (single,)})))
    asked = json.loads(get(named, "/api/axis", w="코로나", name="tone"))
    assert "구간을 낼 수 없어" in asked["sentence"]
    frequency = held(get(client, "/word", w="코로나"), "data-chart")
    drawn = [
        {line["name"]: line["colour"] for line in chart["lines"]}
        for chart in (frequency, found["chart"])
    ]
    assert drawn[1] == {**drawn[0], "모든 출처": 7}, "a source has one colour on a page"
    assert "there are sentiment" in get(client, "/api/axis", 400, w="코로나", name="none")
    assert "위치를 말할 수 없습니다" in unpoled(client_of, config, "ko")
    assert "one side was used lately" in unpoled(client_of, config, "en")
    nobody = json.loads(get(client, "/api/axis", w="쀍쀍", name="sentiment"))
    assert nobody["chart"] is None


def test_evidence_is_addresses_and_no_script(client, config):
    html = get(client, f"/word/{quote('코로나')}")
    assert 'href="https://news.example/0"' in html
    assert "2020-03-02" in html
    assert "2020-03-02 09:00" not in html, "the hour would say who wrote it"
    assert "javascript:" not in html
    assert "<script>alert" not in html
    found = json.loads(get(client, "/api/evidence", w="코로나"))
    assert {one["source"] for one in found["documents"]} == {"뉴스", "게시판", "댓글"}
    first = ids(config)[0]
    assert "이 말에 남긴 주소가 없습니다" in get(client, f"/word/{quote('코로나')}", now=first)
    assert json.loads(get(client, "/api/evidence", w="코로나", id=first))["documents"] == []


def test_a_damaged_file_of_evidence_is_said(planted, client_of, config, tmp_path):
    month = tmp_path / "2020-03"
    month.mkdir()
    (month / "node-1-0.parquet").write_bytes(b"cut off")
    broken = config.model_copy(update={"evidence": tmp_path})
    client = client_of(unguarded(broken))
    client.headers["accept-language"] = "ko"
    assert "cannot be read" in client.get("/api/evidence?w=코로나").json()["error"]
    page = client.get("/word/코로나")
    assert page.status_code == 200
    assert "원문 주소를 읽을 수 없습니다" in page.text


def test_a_snapshot_that_fails_its_checksum_is_named_and_left_out(planted, tmp_path, client_of):
    store = planted.make_store(str(tmp_path), planted.Plan(windows=3, fillers=60))
    rotten = store.list()[1].id
    file = tmp_path / rotten / "vectors.arrow"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    config = WebConfig(snapshots=str(tmp_path), refresh_s=0.0)
    client = client_of(unguarded(config))
    client.headers["accept-language"] = "ko"
    until(lambda: "SHA-256" in client.get("/snapshots").text)
    page = client.get("/snapshots").text
    assert f"snapshot {rotten}: vectors.arrow is damaged" in page
    shown = client.get(f"/window/{rotten}").text
    assert "is damaged" in shown
    assert "찾는 기간이 없거나 읽을 수 없습니다" in shown
    until(lambda: 'class="working"' not in client.get("/").text, "the report is being computed")
    front = client.get("/").text
    assert "읽을 수 없어 뺀 것 1개: 2019년 12월." in front
    assert client.get("/word/영화").status_code == 200
    assert client.get("/api/word/영화").json()["points"][-1]["snapshot"] != rotten
    from typer.testing import CliRunner

    from embedding.cli import app

    told = CliRunner().invoke(app, ["trends", "moved", "--snapshots", str(tmp_path), "--json"])
    assert "vectors.arrow is damaged" in told.stdout, "as the page leaves it out"


def test_a_store_without_sums_of_usage_says_why(planted, tmp_path, client_of):
    planted.make_store(str(tmp_path), planted.Plan(windows=2, fillers=60))
    client = client_of(unguarded(WebConfig(snapshots=str(tmp_path))))
    client.headers["accept-language"] = "ko"
    assert "server.usage" in client.get("/sources").text
    axis = client.get("/api/axis?w=영화&name=sentiment")
    assert axis.status_code == 400
    assert "어떻게 쓰였는지 남아 있지" in axis.json()["sentence"]
    assert "주소를 남기지 않도록" in client.get("/word/영화").text


@pytest.mark.parametrize("path", ["/compare", "/windows", "/sources", "/watch", "/map?w=x"])
def test_a_store_of_none_or_one_window_breaks_no_view(planted, tmp_path, client_of, path):
    for windows in (0, 1):
        folder = tmp_path / str(windows)
        folder.mkdir()
        if windows:
            planted.make_store(str(folder), planted.Plan(windows=1, fillers=50))
        client = client_of(unguarded(WebConfig(snapshots=str(folder))))
        answer = client.get(path)
        assert answer.status_code == (404 if "map" in path else 200), answer.text[:300]
        assert "</html>" in answer.text
