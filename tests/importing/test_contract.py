"""What every reader must do, whatever it reads."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embedding.importing.importing import ImportRequest, plan_import, run_import
from embedding.importing.readers import READERS, ReadOptions
from embedding.kernel.errors import InputError

N = 3
ROWS = [(f"2020-02-0{at + 1}", f"글 {at} 의 본문입니다", f"제목 {at}", "홍길동") for at in range(N)]
HEAD = ["date", "text", "title", "author"]
PAGE = (
    "<html><head><title>{title}</title><meta property='article:published_time' content='{date}'>"
    "<meta name='author' content='{author}'></head><body><article><p>{text}. "
    "이 글은 충분히 길어서 본문으로 읽힌다. 여러 문장이 이어진다.</p></article></body></html>"
)


def table(path: Path) -> None:
    lines = [",".join(HEAD), *(",".join(row) for row in ROWS)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def json_lines(path: Path) -> None:
    lines = [json.dumps(dict(zip(HEAD, row, strict=True)), ensure_ascii=False) for row in ROWS]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def parquet(path: Path) -> None:
    pq.write_table(
        pa.table({name: [row[at] for row in ROWS] for at, name in enumerate(HEAD)}), path
    )


def sheet(path: Path) -> None:
    from openpyxl import Workbook

    book = Workbook()
    for row in (HEAD, *ROWS):
        book.active.append(row)
    book.save(path)


def mailbox(path: Path) -> None:
    mails = [
        f"From a@b Mon Feb  3 00:00:00 2020\nDate: 0{at + 1} Feb 2020 00:00:00 +0000\n"
        f"From: 홍길동 <hong@example.org>\nSubject: {title}\n"
        "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n"
        f"\n> 앞의 말\n{text}\n"
        for at, (_, text, title, _) in enumerate(ROWS)
    ]
    path.write_text("\n".join(mails), encoding="utf-8")


def feed(path: Path) -> None:
    items = "".join(
        f"<item><title>{title}</title><author>{author}</author><description>&lt;p&gt;{text}"
        f"&lt;/p&gt;</description><pubDate>0{at + 1} Feb 2020 00:00:00 GMT</pubDate></item>"
        for at, (_, text, title, author) in enumerate(ROWS)
    )
    prolog = '<?xml version="1.0" encoding="euc-kr"?><rss version="2.0"><channel><title>t</title>'
    path.write_text(f"{prolog}{items}</channel></rss>", encoding="cp949")


def web_archive(path: Path) -> None:
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter

    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        for at, (date, text, title, author) in enumerate(ROWS):
            page = PAGE.format(date=date, text=text, title=title, author=author).encode()
            headers = StatusAndHeaders(
                "200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1"
            )
            writer.write_record(
                writer.create_warc_record(
                    f"https://news.example.org/{at}",
                    "response",
                    io.BytesIO(page),
                    http_headers=headers,
                )
            )


def knowledge_graph(path: Path) -> None:
    lines = []
    for date, text, _, _ in ROWS:
        cells = [""] * 27
        cells[1], cells[3] = date.replace("-", "") + "000000", "example.org"
        cells[26] = f"<PAGE_TITLE>{text}</PAGE_TITLE>"
        lines.append("\t".join(cells))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


CASES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "csv": ("a.csv", table),
    "feed": ("a.xml", feed),
    "gkg": ("a.gkg.csv", knowledge_graph),
    "jsonl": ("a.jsonl", json_lines),
    "mbox": ("a.mbox", mailbox),
    "parquet": ("a.parquet", parquet),
    "warc": ("a.warc.gz", web_archive),
    "xlsx": ("a.xlsx", sheet),
}


@pytest.fixture(params=READERS.names())
def reader(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def path(reader: str, tmp_path: Path) -> Path:
    if reader not in CASES:  # of another package
        module = sys.modules[READERS.get(reader).__module__]
        path = tmp_path / f"a{READERS.traits(reader).suffixes[0]}"
        path.write_bytes(module.EXAMPLE)
        return path
    name, write = CASES[reader]
    write(tmp_path / name)
    return tmp_path / name


def test_all_records_come_in_order_with_their_numbers(reader: str, path: Path) -> None:
    found = list(READERS.get(reader)(path, ReadOptions(), 0))
    assert [number for raw in found for number in raw.numbers] == list(range(N))
    assert not [each for raw in found for each in raw.wrong]
    for raw in found:
        assert all(len(column) == len(raw.numbers) for column in raw.columns.values())
        assert 0 <= raw.done <= 1


def test_reading_goes_on_at_a_record(reader: str, path: Path) -> None:
    whole = list(READERS.get(reader)(path, ReadOptions(), 0))
    rest = list(READERS.get(reader)(path, ReadOptions(), N - 1))
    assert [number for raw in rest for number in raw.numbers] == [N - 1]
    last = [raw for raw in whole if raw.numbers][-1]
    (raw,) = [each for each in rest if each.numbers]
    for name, column in raw.columns.items():
        assert column[0].as_py() == last.columns[name][-1].as_py()


def test_a_file_is_known_by_itself_and_becomes_a_corpus(reader: str, path: Path) -> None:
    request = ImportRequest(files=(path,), out=path.parent / "corpus.jsonl", key=b"key")
    (plan,) = plans = plan_import(request)
    assert plan.reader == reader
    result = run_import(request, plans, lambda *_: None)
    assert (result.records, result.first, result.last) == (N, "2020-02-01", "2020-02-03")
    lines = [json.loads(line) for line in request.out.read_text("utf-8").splitlines()]
    assert [line["date"] for line in lines] == [f"2020-02-0{at + 1}T00:00:00Z" for at in range(N)]
    assert all(f"글 {at} 의 본문" in line["text"] for at, line in enumerate(lines))
    # Names of authors do not get out.
    assert "홍길동" not in request.out.read_text("utf-8")
    assert len({line.get("author") for line in lines}) == 1


def test_what_is_no_file_of_this_kind_is_one_sentence(reader: str, tmp_path: Path) -> None:
    path = tmp_path / "what"
    path.write_bytes(b"\x00\x01\x02 what is this \xff\xfe" * 40)
    request = ImportRequest(files=(path,), out=tmp_path / "o.jsonl", reader=reader)
    with pytest.raises(InputError) as caught:
        run_import(request, plan_import(request), lambda *_: None)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == [path]
