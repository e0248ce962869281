"""The HTML pages: content, escaping, languages, mounts, empty and broken stores."""

from __future__ import annotations

import csv
import io
import re
import time
import unicodedata
from html import unescape
from html.parser import HTMLParser
from urllib.parse import quote

import pytest
from fastapi import Depends, FastAPI, HTTPException
from unguarded import unguarded

from embedding.ask import answers
from embedding.snapshots.store import SnapshotStore
from embedding.trends import report as computing
from embedding.trends import storage
from embedding.trends.report import build_report
from embedding.web.app import create_app
from embedding.web.config import WebConfig
from waiting import until

SCRIPT = "<script>alert(1)</script>"


class Reading(HTMLParser):
    """Collects links, scripts, ids and text; complains about inline style and handlers."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.scripts: list[str | None] = []
        self.ids: list[str] = []
        self.words: list[str] = []
        self.inline: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.links += [given[k] for k in ("href", "src", "action") if k in given]
        self.ids += [given["id"]] if "id" in given else []
        self.inline += [k for k in given if k == "style" or k.startswith("on")]
        if tag == "script":
            self.scripts.append(given.get("src"))

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def answered(client, path, **headers):
    """The answer, asked for again while it is being computed, as a browser does."""
    while (answer := client.get(path, headers=headers)).status_code == 202:
        time.sleep(0.1)
    return answer


def read(client, path, status=200, **headers) -> Reading:
    answer = answered(client, path, **headers)
    assert answer.status_code == status, answer.text[:500]
    return Reading(answer.text)


def test_the_brief_says_what_was_planted(client):
    page = read(client, "/")
    assert "2020년 3월 요약" in page.text
    assert re.search("2020년 3월에 ‘[^.]*신천지’[^.]* 새로 떠올랐습니다", page.text)
    assert re.search(r"가까운 말 \d+개 가운데 \d+개는 2020년 2월에 가깝지 않던 말입니다", page.text)
    for word in ("코로나", "신천지", "마스크", "뉴스", "게시판"):
        assert word in page.text
    assert f"/word/{quote('신천지')}" in page.links


def test_the_brief_leads_with_stories_and_their_documents(client, config):
    page = client.get("/").text
    assert page.index('id="stories"') < page.index('id="moved"')
    section = page[page.index('id="stories"') : page.index('id="moved"')]
    assert "의미가 달라짐" in section
    assert "코로나" in section
    assert "2020년 3월에 ‘" in section
    assert 'href="https://news.example/0"' in section
    assert "javascript:" not in section
    assert "<script" not in section


@pytest.fixture(scope="module")
def gone_quiet(planted, tmp_path_factory, client_of):
    """A page over windows of which the last one has no finding, and the one before has."""
    root = tmp_path_factory.mktemp("quiet")
    plan = planted.Plan(
        windows=4,
        fillers=150,
        moved={"코로나": ("영화", "바이러스", 2)},
        born={},
        risen={},
        lone={},
    )
    store = planted.make_store(str(root / "snapshots"), plan)
    for ref in store.list():
        storage.save(build_report(store, ref.id), root / "trends")
    config = WebConfig(snapshots=str(root / "snapshots"), reports=root / "trends")
    return client_of(unguarded(config)), [ref.id for ref in store.list()]


def test_the_front_page_opens_on_the_newest_window_with_a_finding(gone_quiet):
    client, ids = gone_quiet
    for language, quiet, opens in (
        ("ko", "최근 달인 2020년 2월에는 뚜렷한 변화가 없어", "2020년 2월 보기"),
        ("en", "February 2020, the latest month, has no clear change.", "Open February 2020"),
    ):
        page = unescape(answered(client, "/", **{"accept-language": language}).text)
        hero = page[page.index('class="hero"') : page.index("</h1>")]
        assert ("2020년 1월 요약" if language == "ko" else "January 2020") in hero
        assert quiet in hero
        assert opens in hero
        assert f'href="/window/{ids[-1]}"' in hero
        assert "코로나" in hero[hero.index("<h1>") :]
        asked = answered(client, f"/window/{ids[-1]}", **{"accept-language": language}).text
        assert quiet not in unescape(asked), "who asks for a window gets that one"
        assert f'href="/window/{ids[-2]}"' in asked


def test_where_no_window_has_a_finding_the_newest_one_opens(planted, tmp_path, client_of):
    plan = planted.Plan(windows=3, fillers=120, moved={}, born={}, risen={}, lone={})
    planted.make_store(str(tmp_path), plan)
    page = read(client_of(unguarded(WebConfig(snapshots=str(tmp_path)))), "/")
    assert "뚜렷이 달라진 말이 없습니다" in page.text
    assert 'class="newest"' not in page.text


def test_the_example_of_the_search_finds_something(client):
    for path in ("/", "/search?q=쀍쀍쀍쀍"):
        example = re.search(r"예: (\w+)\)", read(client, path).text)[1]
        assert client.get("/api/suggest", params={"q": example}).json()["words"], path


def test_a_brief_without_a_find_says_so_and_folds_its_ranking(client, config):
    quiet = SnapshotStore(config.snapshots).list()[2].id
    html = answered(client, f"/window/{quiet}").text
    moved = html[html.index('aria-labelledby="moved"') :].split("</section>")[0]
    assert "뚜렷한 변화가 없습니다. 아래 목록은 우연일 수 있습니다" in moved
    assert '<details class="unsure-rows">' in moved
    assert moved.index("없습니다") < moved.index("<details") < moved.index("<ol>")
    assert "부터" not in moved  # no date for what is no find


@pytest.mark.parametrize("path", ["/", "/word/코로나", "/snapshots", "/search?q=코", "/nowhere"])
def test_pages_hold_no_inline_code_and_no_id_twice(client, path):
    page = Reading(client.get(path).text)
    assert page.inline == []
    assert len(page.ids) == len(set(page.ids))
    assert all(src and src.startswith("/static/") for src in page.scripts)
    elsewhere = [link for link in page.links if not link.startswith(("/", "#", "?"))]
    assert all(link.startswith("https://") and ".example/" in link for link in elsewhere)
    assert not [link for link in page.links if link.startswith("//")]


def test_every_link_of_the_brief_leads_somewhere(client):
    elsewhere = ("#", "?", "https://")
    links = {link for link in read(client, "/").links if not link.startswith(elsewhere)}
    assert len(links) > 20
    words = sorted(link for link in links if "/word" in link)
    broken = [
        link
        for link in {*words[:12], *(links - {*words})}
        # The brief of an earlier window, or two sources, may still be computed.
        if client.get(link).status_code not in {200, *([202] if link not in words else [])}
    ]
    assert broken == []


def test_the_word_page_shows_frequency_and_neighbours(client):
    until(lambda: client.get("/api/since", params={"w": "코로나"}).json()["kind"] == "moved")
    page = read(client, "/word/코로나")
    for text in ("출처별 빈도", "새로 가까워짐", "멀어짐", "2019년 11월"):
        assert text in page.text
    html = client.get("/word/코로나").text
    assert html.count("data-chart=") == 1
    assert "나쁘다" in page.text
    assert re.search(
        r"2020년 3월에 읽은 문서 6,500건 가운데 [\d,]+건이 이 말을 썼습니다", page.text
    )


def test_two_windows_can_be_chosen(client, config):
    ids = [ref.id for ref in SnapshotStore(config.snapshots).list()]
    html = client.get("/word/코로나", params={"then": ids[0], "now": ids[1]}).text
    assert f'value="{ids[0]}" selected' in html
    assert f'value="{ids[1]}" selected' in html
    assert client.get("/word/코로나", params={"then": "nonsense"}).status_code == 200


def test_hostile_words_are_text(client):
    for path in ("/", "/search?q=script"):
        html = client.get(path).text
        assert SCRIPT not in html
        assert "&lt;script&gt;" in html
    page = read(client, f"/word/{quote(SCRIPT, safe='')}")
    assert SCRIPT in page.text


@pytest.mark.parametrize(
    "word",
    [
        '" onmouseover="alert(1)',
        "👩‍👩‍👧🇰🇷",
        "\u202eمرحبا\u202c",
        "a/../b",
        "..",
        "100%25&w=#x",
        "{{7*7}}",
    ],
)
def test_odd_words_have_a_page_at_the_address_that_links_to_it(client, word):
    from embedding.web.links import PagePaths

    page = read(client, PagePaths("").word(word))
    assert page.inline == []
    assert " ".join(word.split()) in page.text
    assert client.get(PagePaths("").word_json(word)).json()["word"] == word


def test_a_word_of_ten_thousand_letters_is_cut_wherever_it_shows(client):
    for path in ("/", "/word/코로나", "/search?q=가가"):
        assert "가" * 301 not in client.get(path).text
    page = client.get("/word", params={"w": "w" * 10_000})
    assert page.status_code == 404
    assert "w" * 301 not in page.text.partition("<main")[2]
    assert client.get("/search", params={"q": "w" * 10_000}).status_code == 200


def test_an_unknown_word_names_the_nearest_spellings(client):
    page = read(client, "/word/코로니", status=404)
    assert "‘코로니’에 대한 자료가 없습니다" in page.text
    assert f"/word/{quote('코로나')}" in page.links
    assert client.get("/api/word/코로니").json()["nearest"][0] == "코로나"


def test_search_finds_by_beginning_and_by_part(client):
    assert f"/word/{quote('마스크')}" in read(client, "/search?q=마스").links
    assert f"/word/{quote('마스크')}" in read(client, "/search?q=스크").links
    nothing = read(client, "/search?q=쀍쀍쀍")
    assert "이 글자가 든 말이 없습니다. 더 짧게 쳐 보세요" in nothing.text
    assert "/" in nothing.links
    assert "입력하세요" in read(client, "/search?q=").text


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_whole_word_leads_to_its_page_and_its_list_stays_reachable(client, form):
    word = "마스크"
    answer = client.get("/search", params={"q": f" {unicodedata.normalize(form, word)} "})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/word/{quote(word)}")
    assert f"/search?like={quote(word)}" in read(client, f"/word/{word}").links
    assert f"/word/{quote(word)}" in read(client, f"/search?like={word}").links


def test_the_snapshots_are_listed_latest_first(client, config):
    page = read(client, "/snapshots")
    ids = [ref.id for ref in SnapshotStore(config.snapshots).list()]
    assert [word for word in page.words if word in ids] == ids[::-1]


def test_a_window_has_a_permanent_address(client, config):
    first, *_, last = (ref.id for ref in SnapshotStore(config.snapshots).list())
    assert "2020년 3월" in read(client, f"/window/{last}").text
    assert "첫 달입니다" in read(client, f"/window/{first}").text
    assert "none of that id" in read(client, "/window/2031-01-abcdef01", status=404).text


def test_where_one_source_is_read_no_word_is_only_in_it(client, planted, tmp_path, client_of):
    assert "출처 3곳" in client.get("/").text
    plan = planted.Plan(windows=4, fillers=100, documents={"말뭉치": 3000})
    planted.make_store(str(tmp_path), plan)
    config = WebConfig(snapshots=str(tmp_path))
    alone = client_of(unguarded(config))
    alone.headers["accept-language"] = "ko"
    until(lambda: "마스크" in alone.get("/").text)
    assert "말뭉치에서만" not in alone.get("/").text


def test_rankings_and_histories_come_as_csv(client, config):
    last = SnapshotStore(config.snapshots).list()[-1].id
    answer = client.get(f"/window/{last}/moved.csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert f"moved-{last}.csv" in answer.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.text.lstrip("\ufeff"))))
    assert rows[0]["word"] == "코로나"
    assert client.get(f"/window/{last}/best.csv").status_code == 404
    history = client.get("/word.csv", params={"w": "코로나"}).text
    assert history.count("\n") == 1 + 5 * 3


def test_the_language_follows_the_browser_the_address_and_the_cookie(config, client_of):
    client = client_of(unguarded(config))
    assert (
        "의미가 달라진 말"
        in read(client, "/", **{"accept-language": "ko-KR,ko;q=0.9,en;q=0.8"}).text
    )
    assert "Changed in meaning" in read(client, "/", **{"accept-language": "en-GB"}).text
    assert "Changed in meaning" in read(client, "/?lang=en", **{"accept-language": "ko"}).text
    assert "Changed in meaning" in read(client, "/", **{"accept-language": "ko"}).text
    assert "의미가 달라진 말" in read(client, "/?lang=ko").text
    assert "의미가 달라진 말" in read(client, "/?lang=zz", **{"accept-language": "en"}).text


def test_every_answer_carries_the_security_headers(client):
    for path in ("/", "/health", "/static/app.css", "/api/moved", "/nowhere", "/word/쀍"):
        headers = client.get(path).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "frame-ancestors 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize("method", ["post", "put", "delete", "patch"])
def test_nothing_can_be_changed(client, method):
    for path in ("/", "/word/코로나", "/api/moved", "/snapshots"):
        assert getattr(client, method)(path).status_code == 405


@pytest.mark.parametrize("soon", [0.0, 30.0], ids=["sources come later", "at once"])
def test_mounted_under_a_prefix_all_links_keep_it(config, client_of, monkeypatch, soon):
    monkeypatch.setattr("embedding.web.pages.SOON_S", soon)
    outer = FastAPI()
    outer.mount("/yeoron", unguarded(config))
    client = client_of(outer)
    for path in ("/yeoron/", "/yeoron/word/코로나", "/yeoron/snapshots", "/yeoron/nowhere"):
        links = Reading(client.get(path).text).links
        assert all(link.startswith(("/yeoron/", "#", "?", "https://")) for link in links)
    page = Reading(client.get("/yeoron/").text)
    own = [link for link in page.links[:16] if link[0] == "/"]
    assert all(client.get(link).status_code in {200, 202} for link in own)


def test_the_guard_of_another_application_stands_before_every_route(config, client_of):
    def keep_out() -> None:
        raise HTTPException(401, "log in to Airflow.", headers={"WWW-Authenticate": "Bearer"})

    app = create_app(config, dependencies=[Depends(keep_out)])
    client = client_of(app)
    routes = [(method, r.path) for r in app.routes if r.path != "/health" for method in r.methods]
    assert len(routes) > 12
    for method, path in routes:
        for name in ("{id}", "{word:path}", "{ranking}", "{name}"):
            path = path.replace(name, "moved" if name == "{ranking}" else "x")
        answer = client.request(method, path, params={"w": "코로나"})
        assert answer.status_code == 401, (method, path)
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "코로나" not in answer.text
    assert client.get("/health").json() == {"status": "ok"}


def test_an_empty_store_says_what_to_wait_for(tmp_path, client_of):
    for store in (tmp_path / "missing", tmp_path):
        config = WebConfig(snapshots=str(store))
        client = client_of(unguarded(config))
        assert "아직 끝난 기간이 없습니다" in read(client, "/").text
        assert read(client, "/snapshots").text
        assert "아직 끝난 기간이" in read(client, "/word/코로나", status=404).text
        assert "no snapshot" in client.get("/api/word/코로나").json()["error"]
        assert client.get("/search?q=코").status_code == 404
        assert client.get("/api/suggest?q=코").json()["words"] == []


def test_one_snapshot_only_shows_what_was_read(planted, tmp_path, client_of):
    planted.make_store(str(tmp_path), planted.Plan(windows=1, fillers=50))
    client = client_of(unguarded(WebConfig(snapshots=str(tmp_path))))
    page = read(client, "/")
    assert "2019년 11월이 첫 달입니다" in page.text
    assert "6,500" in page.text
    assert client.get("/word/코로나").status_code == 200


def test_a_broken_snapshot_is_named_and_the_rest_is_shown(planted, tmp_path, client_of):
    store = planted.make_store(str(tmp_path), planted.Plan(windows=3, fillers=60))
    broken = store.list()[1].id
    (tmp_path / broken / "vectors.arrow").write_bytes(b"cut off")
    client = client_of(unguarded(WebConfig(snapshots=str(tmp_path))))
    page = read(client, "/snapshots")
    assert "읽을 수 없는 스냅샷" in page.text
    assert broken in page.text
    assert "2020년 1월" in read(client, "/").text
    assert client.get("/word/코로나").status_code == 200
    assert "7 bytes" in read(client, f"/window/{broken}", status=404).text


def test_a_report_that_takes_long_is_announced(config, monkeypatch):
    import threading

    wait = threading.Event()
    build = computing.build_report
    monkeypatch.setattr(computing, "build_report", lambda *a: (wait.wait(30), build(*a))[1])
    site = answers.Answers(config.model_copy(update={"reports": None}))
    last = site.list()[-1].id
    with pytest.raises(answers.LaterError):
        site.report(last, wait_s=0.05)
    assert site.known_report(last) is None
    wait.set()
    assert site.report(last, wait_s=30).moved[0].word == "코로나"
    assert site.known_report(last) is not None


def test_a_damaged_report_is_computed_again(config, tmp_path, caplog, client_of):
    last = SnapshotStore(config.snapshots).list()[-1].id
    (tmp_path / last).mkdir()
    (tmp_path / last / "report.json").write_text("{")
    again = config.model_copy(update={"reports": tmp_path})
    client = client_of(unguarded(again))
    assert "코로나" in read(client, "/").text
    assert "computed again" in caplog.text


def test_an_unexpected_error_tells_no_details(config, monkeypatch, client_of):
    def fail(self):
        raise RuntimeError("secret detail")

    monkeypatch.setattr(answers.Answers, "listing", fail)
    app = unguarded(config)
    answer = client_of(app).get("/snapshots")
    assert answer.status_code == 500
    assert "secret detail" not in answer.text
    assert "content-security-policy" in answer.headers
    assert client_of(app).get("/api/snapshots").json()["error"]


def test_the_window_that_was_compared_with_is_named_as_months_may_lie_between(client):
    page = client.get("/", headers={"accept-language": "en"}).text
    assert "different company than February 2020" in page
