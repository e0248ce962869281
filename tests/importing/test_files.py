"""What people's files are like: encodings, dates, columns, and what is wrong in them."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from embedding.importing.importing import (
    DateReading,
    ImportRequest,
    ImportResult,
    plan_import,
    run_import,
)
from embedding.kernel.errors import ConfigError, InputError, YeoronError

KOREAN = "작성일,제목,본문\n" + "".join(
    f"2020-02-{day:02},나침반 {day},봄이 오면 나침반을 들고 도로에 나가는 사람이 많아진다\n"
    for day in range(1, 21)
)
JAPANESE = "日付,本文\n" + "".join(
    f"2020-02-{day:02},これは日本語の文章です。カタカナもひらがなも漢字もあります。\n"
    for day in range(1, 21)
)
CHINESE = "date,text\n" + "".join(
    f"2020-02-{day:02},这是一个用中文写的句子，里面有很多常见的汉字和标点符号。\n"
    for day in range(1, 21)
)
TAIWANESE = "date,text\n" + "".join(
    f"2020-02-{day:02},這是一個用繁體中文寫的句子，裡面有很多常見的漢字和標點符號。\n"
    for day in range(1, 21)
)
FRENCH = "date;texte\n" + "".join(
    f"2020-02-{day:02};L'été dernier, à la forêt, nous avons mangé des pâtés très légers, voilà\n"
    for day in range(1, 21)
)


class Folder:
    """Imports files of a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.out = path / "corpus.jsonl"

    def take(self, name: str, data: bytes | str, **options: object) -> ImportResult:
        file = self.path / name
        file.write_bytes(data.encode() if isinstance(data, str) else data)
        request = ImportRequest(files=(file,), out=self.out, key=b"key", **options)  # type: ignore[arg-type]
        return run_import(request, plan_import(request), lambda *_: None)

    def lines(self) -> list[dict[str, str]]:
        return [json.loads(line) for line in self.out.read_text("utf-8").splitlines()]

    def refuses(self, name: str, data: bytes | str, **options: object) -> str:
        with pytest.raises(YeoronError) as caught:
            self.take(name, data, **options)
        assert {each.name for each in self.path.iterdir()} == {name}
        assert isinstance(caught.value, InputError | ConfigError)
        return str(caught.value).removeprefix(f"{self.path}/")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.mark.parametrize(
    ("text", "encoding", "mark"),
    [
        (KOREAN, "utf-8", b""),
        (KOREAN, "utf-8", codecs.BOM_UTF8),
        (KOREAN, "cp949", b""),
        (KOREAN, "euc-kr", b""),
        (KOREAN, "johab", b""),
        (KOREAN, "iso2022_kr", b""),
        (KOREAN, "utf-16-le", codecs.BOM_UTF16_LE),
        (KOREAN, "utf-16-be", codecs.BOM_UTF16_BE),
        (KOREAN, "utf-16-le", b""),
        (KOREAN, "utf-32-le", codecs.BOM_UTF32_LE),
        (JAPANESE, "shift_jis", b""),
        (JAPANESE, "euc_jp", b""),
        (CHINESE, "gb18030", b""),
        (TAIWANESE, "big5", b""),
        (FRENCH, "cp1252", b""),
    ],
)
def test_encodings_are_found(folder: Folder, text: str, encoding: str, mark: bytes) -> None:
    result = folder.take("a.csv", mark + text.encode(encoding))
    assert (result.records, sum(result.wrong.values())) == (20, 0)
    last = text.splitlines()[-1].replace(";", ",", 1).rsplit(",", 1)[-1]
    assert folder.lines()[-1]["text"].endswith(last[-10:])


def test_an_encoding_that_is_named_counts(folder: Folder) -> None:
    assert folder.take("a.csv", KOREAN.encode("cp949"), encoding="cp949").records == 20


@pytest.mark.parametrize(
    ("name", "pack"),
    [("a.csv.gz", gzip.compress), ("a.csv.zip", None), ("a.tsv.bz2", __import__("bz2").compress)],
)
def test_packed_files_are_unpacked(folder: Folder, name: str, pack: object) -> None:
    data = KOREAN.encode()
    if callable(pack):
        data = pack(data)
    else:
        kept = io.BytesIO()
        with zipfile.ZipFile(kept, "w") as archive:
            archive.writestr("a.csv", KOREAN)
        data = kept.getvalue()
    assert folder.take(name, data).records == 20


@pytest.mark.parametrize(
    ("name", "head", "row", "found"),
    [
        (
            "bigkinds.csv",
            "뉴스 식별자,일자,언론사,기고자,제목,통합 분류1,본문,URL",
            "01,20240131,한겨레,홍길동,제목,정치,본문입니다 정말,https://a.kr",
            {"date": "2024-01-31T00:00:00Z", "source": "한겨레", "text": "본문입니다 정말"},
        ),
        (
            "mediacloud.csv",
            "id,indexed_date,language,media_name,media_url,publish_date,title,url",
            "1,2024-02-05 01:00:00,ko,example.org,example.org,2024-01-31,A headline,https://a.kr",
            {"date": "2024-01-31T00:00:00Z", "source": "example.org", "text": "A headline"},
        ),
        (
            "gdelt.csv",
            "URL,MobileURL,Date,Title",
            "https://a.kr,,2024-01-31 10:15:00,A headline of GDELT",
            {"date": "2024-01-31T10:15:00Z", "text": "A headline of GDELT"},
        ),
        (
            "semicolons.csv",
            "ID;Erstellt;Beitrag;Wer",
            "7;31.01.2024;Das ist ein Beitrag;x",
            None,
        ),
        (
            "excel.csv",
            "created_at,content",
            '"=""2024-01-31""","=""a text that Excel keeps as a text"""',
            {"date": "2024-01-31T00:00:00Z", "text": "a text that Excel keeps as a text"},
        ),
        (
            "unix.csv",
            "timestamp,message",
            "1706659200,a message of somebody",
            {"date": "2024-01-31T00:00:00Z", "text": "a message of somebody"},
        ),
    ],
)
def test_columns_are_found_by_name_and_value(
    folder: Folder, name: str, head: str, row: str, found: dict[str, str] | None
) -> None:
    text = f"{head}\n{row}\n"
    if found is None:
        assert "no column of dates is found among ID, Erstellt" in folder.refuses(name, text)
        form = {"columns": {"date": "Erstellt", "text": "Beitrag"}, "date_format": "%d.%m.%Y"}
        assert folder.take(name, text, **form).records == 1
        return
    folder.take(name, text)
    (line,) = folder.lines()
    assert {key: line[key] for key in found} == found


def test_a_table_without_names_and_gdelt_as_json(folder: Folder) -> None:
    folder.take("a.csv", "2024-01-31,a text without names\n2024-02-01,a text\n")
    assert [line["text"] for line in folder.lines()] == ["a text without names", "a text"]
    folder.out.unlink()
    article = {"url": "https://a.kr", "title": "머리글", "seendate": "20240131T101500Z"}
    folder.take("b.json", json.dumps({"articles": [{**article, "domain": "a.kr"}]}, indent=1))
    assert folder.lines() == [{"date": "2024-01-31T10:15:00Z", "source": "a.kr", "text": "머리글"}]


def test_times_without_a_zone_are_in_the_zone_that_is_named(folder: Folder) -> None:
    text = "date,text\n2024-01-31 08:30,a b\n2024-02-01,c d\n"
    folder.take("a.csv", text, timezone="Asia/Seoul")
    # A date without a time is that day everywhere.
    assert [line["date"] for line in folder.lines()] == [
        "2024-01-30T23:30:00Z",
        "2024-02-01",
    ]


def test_what_is_wrong_with_a_record_is_counted_and_named(folder: Folder) -> None:
    text = (
        "date,text,source\n2024-02-01,one two,a\nnever,one two,a\n2024-02-02,,a\n2024-02-03\n"
        '2024-02-04,"=HYPERLINK(""http://evil"",""x"")",a\n,one,a\n'
        "2024-01-01,하나 = 둘 아니면 셋 그리고 넷은 다섯보다 적고 여섯보다도 적다,a\n"
        "2024-02-05,last,a,b\n"
    )
    result = folder.take("a.csv", text.encode() + b"2024-02-06,\xff broken,a\n")
    assert result.records == 2
    assert result.sorted
    assert result.wrong == {
        "no date that can be read": 1,
        "no date": 1,
        "no text": 1,
        "1 values for 3 columns": 1,
        "4 values for 3 columns": 1,
        "a formula in place of a text": 1,
        "bytes that are no text": 1,
    }
    assert result.examples[0].endswith("a.csv: record 2: 'never' is no date.")
    assert [line["date"][:10] for line in folder.lines()] == ["2024-01-01", "2024-02-01"]
    # The corpus is its owner's alone.
    assert folder.out.stat().st_mode & 0o77 == 0


def test_a_date_whose_day_may_be_its_month_is_said_to_be_one(folder: Folder) -> None:
    rows = ("2024-02-01,글", "03/04/2024,글", "13/13/2024,글", *["2024-02-02,글"] * 7)
    result = folder.take("a.csv", "\n".join(("date,text", *rows)).encode())
    assert result.wrong == {"no date that can be read": 2}
    assert [one.partition(": record ")[2] for one in result.examples] == [
        "2: '03/04/2024' may begin with its day or its month, so it is no date.",
        "3: '13/13/2024' is no date.",
    ]


def test_a_formula_in_a_spreadsheet_counts_as_what_was_computed_last(folder: Folder) -> None:
    from openpyxl import Workbook

    book = Workbook()
    book.active.append(["date", "text"])
    book.active.append(["2024-02-01", "a text that somebody wrote"])
    book.active.append(["2024-02-02", '=CONCATENATE("never", " computed")'])
    held = io.BytesIO()
    book.save(held)
    result = folder.take("a.xlsx", held.getvalue())
    assert (result.records, sum(result.wrong.values())) == (1, 1)
    assert "computed" not in folder.out.read_text("utf-8")


def test_a_title_may_stand_in_each_of_the_cells_that_were_merged(folder: Folder) -> None:
    from openpyxl import Workbook

    book, held = Workbook(), io.BytesIO()
    for row in (["게시글 목록"] * 3, ["작성일", "제목", "본문"], ["2024-02-01", "봄", "봄이 온다"]):
        book.active.append(row)
    book.save(held)
    assert folder.take("a.xlsx", held.getvalue()).records == 1
    (folder.path / "corpus.jsonl").unlink()
    table = KOREAN.splitlines()
    assert folder.take("a.csv", "\n".join(["목록,목록,목록", *table])).records == len(table) - 1


BOARD = (
    '<html><head><meta http-equiv="Content-Type" content="text/html; charset={}">'
    "<style>br {{mso-data-placement:same-cell;}}</style></head><body><table border=1>"
    "<tr><th colspan=3>게시글 목록</th></tr><tr><th>작성일<th>제목<th>본문</tr>"
    "<tr><td>2024-02-01<td>봄<td>나침<b>반을</b><br>들고 &lt;도로&gt;에</tr>"
    '<TR CLASS="x"><TD>2024-02-02<TD><TD>사람이 많아진다</TR></table>'
)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.xls", BOARD.format("euc-kr").encode("cp949")),
        ("a.xlsx", BOARD.format("utf-8").encode("utf-8-sig")),
        ("a.xls", "\r\n" + BOARD[BOARD.index("<table") :]),
        ("a.xls", "작성일\t본문\n2024-02-01\t나침반을 들고\n2024-02-02\t사람이\n".encode("utf-16")),
        ("a.xlsx", "작성일,본문\n2024-02-01,나침반을 들고\n2024-02-02,사람이\n".encode("cp949")),
    ],
    ids=["html-euc-kr", "html-utf-8", "html-bare", "text-utf-16", "text-cp949"],
)
def test_a_table_of_html_or_text_may_be_called_a_spreadsheet(
    folder: Folder, name: str, data: bytes | str
) -> None:
    assert folder.take(name, data).records == 2
    lines = folder.lines()
    assert [line["date"][:10] for line in lines] == ["2024-02-01", "2024-02-02"]
    assert lines[0]["text"].startswith("나침반을 들고")


@pytest.mark.parametrize(
    "tail", ['2024-02-03,"cut in the mid', '2024-02-03,"cut\nin the mid', "2024-02-03"]
)
def test_a_table_that_is_cut_off(folder: Folder, tail: str) -> None:
    result = folder.take("a.csv", f"date,text\n2024-02-01,one two\n2024-02-02,three\n{tail}")
    assert result.records == 2
    assert sum(result.wrong.values()) == 1


def test_a_packed_table_that_is_cut_off(folder: Folder) -> None:
    lines = (f"2024-02-01,{at * 7919 % 99991} {at**3} words\n" for at in range(50_000))
    packed = gzip.compress(b"date,text\n" + "".join(lines).encode())
    result = folder.take("a.csv.gz", packed[: len(packed) // 2])
    assert 1_000 < result.records < 50_000
    assert result.wrong == {"the file ends in the middle of it": 1} or (
        "1 values for 2 columns" in result.wrong
    )


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("a.csv", "name,text\nx,one two three\n", "no column of dates is found among name, text"),
        ("a.csv", "date,text\nx,one two three\n", "no column of dates is found among date, text"),
        ("a.csv", "date,n\n2024-01-01,7\n", "no column of texts is found among date, n"),
        ("a.csv", "date,text\n", "holds no record that can be read."),
        ("a.csv", "", "the file is empty; at least one record is expected."),
        ("a.csv", "\n\n", "no line with text; a table with a line of names is expected."),
        ("a.csv", b"\x89PNG\r\n\x1a\n\0\0", "a picture, a document or a program; csv, feed, gkg"),
        ("a.csv", b"a\0\1\2b" * 50, "binary data; a file of text is expected."),
        ("a.bin", b"whatever this is", "neither its name nor its beginning says what it is"),
        ("a.xlsx", b"PK\x03\x04 no zip", "not a complete .xlsx file"),
        (
            "a.xls",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0",
            "written by an old Excel, Word or Hangul",
        ),
        ("a.xls", "<html><body>로그인이 필요합니다</body></html>", "no table in it; save it as"),
        ("a.parquet", b"PAR1 no such thing", "not a complete Parquet file"),
        ("a.jsonl", '[{"date": "2024-01-01"', "not valid JSON"),
        ("a.xml", "<rss><channel></channel></rss>", "no entry of RSS or Atom in it."),
        ("a.csv.gz", b"\x1f\x8b\x08 no such thing", "damaged, it cannot be unpacked"),
    ],
)
def test_what_cannot_be_read_is_one_sentence_and_leaves_nothing(
    folder: Folder, name: str, data: bytes | str, sentence: str
) -> None:
    said = folder.refuses(name, data)
    assert said.startswith(f"{name}: {sentence}")
    assert "\n" not in said


def test_options_that_cannot_be(folder: Folder) -> None:
    for options, sentence in (
        ({"encoding": "klingon"}, "--encoding klingon: no such encoding"),
        ({"encoding": "hex"}, "--encoding hex: no such encoding"),
        ({"timezone": "Mars"}, "--timezone Mars: no such time zone"),
        ({"date_format": "%H"}, "--date-format %H: year, month and day are needed"),
        ({"reader": "word"}, "--reader reader 'word': one of csv, feed"),
        ({"columns": {"date": "when"}}, "a.csv: --map date=when: no such column; there are"),
    ):
        assert folder.refuses("a.csv", KOREAN, **options).startswith(sentence)


def test_a_corpus_that_is_there_is_not_written_over(folder: Folder) -> None:
    folder.take("a.csv", KOREAN)
    before = folder.out.read_bytes()
    with pytest.raises(ConfigError, match="is there already"):
        folder.take("a.csv", KOREAN)
    assert folder.out.read_bytes() == before


def test_an_archive_of_pictures(folder: Folder) -> None:
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter

    kept = io.BytesIO()
    writer = WARCWriter(kept, gzip=True)
    for status, kind in (("200 OK", "image/png"), ("200 OK", "image/png"), ("404 No", "text/html")):
        headers = StatusAndHeaders(status, [("Content-Type", kind)], protocol="HTTP/1.1")
        body = io.BytesIO(b"\x89PNG\r\n")
        writer.write_record(
            writer.create_warc_record("http://a.kr/x", "response", body, http_headers=headers)
        )
    said = folder.refuses("a.warc.gz", kept.getvalue())
    assert "no record has a date and a text" in said
    assert "record 1: image/png, no page" in said


@pytest.mark.parametrize("frames", [1, 2])
def test_an_archive_packed_by_zstandard(folder: Folder, frames: int) -> None:
    from warcio.warcwriter import WARCWriter

    kept = io.BytesIO()
    writer = WARCWriter(kept, gzip=False)
    text = "봄이 오면 나침반을 들고 도로에 나가는 사람이 많아진다. " * 3
    headers = {"Content-Type": "text/plain", "WARC-Date": "2024-03-01T00:00:00Z"}
    for name in ("a", "b"):
        body = io.BytesIO(f"{name} {text}".encode())
        record = writer.create_warc_record(
            f"http://news.example/{name}", "conversion", body, warc_headers_dict=headers
        )
        writer.write_record(record)
    data = kept.getvalue()
    middle = data.index(b"WARC/1.0", 1)
    parts = [data] if frames == 1 else [data[:middle], data[middle:]]
    folder.take("a.warc.zst", b"".join(map(zstandard.compress, parts)))
    assert [line["text"][0] for line in folder.lines()] == ["a", "b"]


DAYS_IN_MONTH = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
FORMS = (
    "{y:04}.{m:02}.{d:02}",
    "{y:04}.{m}.{d} 10:30",
    "{y:04}/{m:02}/{d:02} 10:30:59",
    "{y:04}{m:02}{d:02}",
    "{y:04}{m:02}{d:02}103059",
    "{y:04}-{m:02}-{d:02}",
    "{y:04}-{m:02}-{d:02}T10:30:59Z",
    "{y}년 {m}월 {d}일 오전 10:30",
)


@given(
    form=st.sampled_from(FORMS),
    year=st.sampled_from((1999, 2000, 2021, 2024)),
    month=st.integers(1, 12),
    day=st.integers(1, 31),
)
def test_a_day_is_read_as_it_stands_or_not_at_all(
    form: str, year: int, month: int, day: int
) -> None:
    leap = month == 2 and year % 4 == 0
    [when] = DateReading().times(pa.array([form.format(y=year, m=month, d=day)])).when.to_pylist()
    if day > DAYS_IN_MONTH[month - 1] + leap:
        assert when is None
    else:
        assert (when.year, when.month, when.day) == (year, month, day)


@pytest.mark.parametrize(("form", "value"), [("%d/%m/%Y", "31/06/2021"), ("%d %b %y", "30 Feb 21")])
def test_a_form_of_ones_own_knows_the_calendar_too(form: str, value: str) -> None:
    good = value.replace("31", "01").replace("30", "01")
    read = DateReading(form=form).times(pa.array([value, good, None, value])).when.to_pylist()
    assert [when is None for when in read] == [True, False, True, True]


def test_an_impossible_day_is_left_out_and_named(folder: Folder) -> None:
    rows = "".join(f"2021.02.{day:02},one two\n" for day in range(1, 31) if day != 29)
    result = folder.take("a.csv", "date,text\n" + rows)
    assert (result.records, result.wrong) == (28, {"no date that can be read": 1})
    assert result.examples == [f"{folder.path}/a.csv: record 29: '2021.02.30' is no date."]


ROWS = [
    {
        "제목": f"도서관 {n}",
        "내용": f"도서관이 다시 문을 연다고 한다 {n}",
        "등록일시": f"2024-03-0{n}",
    }
    for n in (1, 2, 3)
]


@pytest.mark.parametrize(
    "answer",
    [
        {"total": 3, "items": ROWS},
        {"fields": [{"id": "제목"}, {"id": "내용"}], "records": ROWS},
        {"response": {"header": {"code": "00"}, "body": {"items": {"item": ROWS}, "total": 3}}},
    ],
)
@pytest.mark.parametrize("indent", [None, 1])
def test_records_are_in_the_list_that_holds_most_text(
    folder: Folder, answer: object, indent: int | None
) -> None:
    assert folder.take("a.json", json.dumps(answer, indent=indent)).records == 3
    assert [line["date"][:10] for line in folder.lines()] == [row["등록일시"] for row in ROWS]


@pytest.mark.parametrize(
    "when", [{"$date": "2024-03-01T06:05:00Z"}, {"$date": {"$numberLong": "1709273100000"}}]
)
def test_an_export_of_mongodb(folder: Folder, when: object) -> None:
    line = json.dumps({"_id": {"$oid": "1"}, "content": ROWS[0]["내용"], "at": when})
    folder.take("a.json", f"{line}\n{line}\n")
    assert [line["date"] for line in folder.lines()] == ["2024-03-01T06:05:00Z"] * 2


@pytest.mark.parametrize("at", [0, 1])
def test_a_comma_may_end_the_first_line_alone_or_all_but_the_first(folder: Folder, at: int) -> None:
    first, rest = KOREAN.split("\n", 1)
    parts = [first, rest]
    parts[at] = parts[at].replace("\n", ",\n") if at else first + ","
    assert folder.take("a.csv", "\n".join(parts)).records == 20


def test_a_title_above_a_table_of_two_columns(folder: Folder) -> None:
    assert folder.take("a.csv", "# 2024년 게시글\n날짜,글\n2024-01-01,봄이 온다\n").records == 1


TABLE = [["date", "text"], ["2024-01-01", "봄이 온다"], ["2024-01-02", "꽃이 핀다"]]
TAGS = {"tags": {"0": ["a"], "1": None}}


@pytest.mark.parametrize(
    "value",
    [
        {"columns": TABLE[0], "index": [0, 1], "data": TABLE[1:]},
        {str(n): dict(zip(TABLE[0], row, strict=True)) for n, row in enumerate(TABLE[1:])},
        {
            name: {str(n): row[at] for n, row in enumerate(TABLE[1:])}
            for at, name in enumerate(TABLE[0])
        }
        | TAGS,
        TABLE,
        TABLE[1:],
    ],
    ids=["split", "index", "columns-with-lists", "values-with-names", "values"],
)
def test_tables_as_pandas_writes_them_in_json(folder: Folder, value: object) -> None:
    assert folder.take("a.json", json.dumps(value)).records == 2
    assert [line["text"] for line in folder.lines()] == ["봄이 온다", "꽃이 핀다"]


def test_a_short_cell_that_is_merged_downwards_counts_for_each_row(folder: Folder) -> None:
    from openpyxl import Workbook

    book, held = Workbook(), io.BytesIO()
    long = "봄이 온다 " * 20
    for row in (
        ["날짜", "글"],
        ["2024-01-01", long],
        [None, "꽃이 핀다"],
        ["2024-01-02", long],
        ["2024-01-03", None],
    ):
        book.active.append(row)
    for place in ("A2:A3", "B4:B5"):
        book.active.merge_cells(place)
    book.save(held)
    result = folder.take("a.xlsx", held.getvalue())
    assert [line["date"][9] for line in folder.lines()] == ["1", "1", "2"]
    assert dict(result.wrong) == {"no text": 1}


@pytest.mark.parametrize(
    "written",
    ["&lt;p&gt;봄이&lt;br&gt;온다&lt;/p&gt;", "<p>봄이<br>온다</p>", "봄이&#60;br /&#62;온다"],
)
def test_markup_that_was_escaped_is_none_of_the_words(folder: Folder, written: str) -> None:
    folder.take("a.jsonl", json.dumps({"date": "2024-01-01", "text": written}))
    assert folder.lines()[0]["text"] == "봄이\n온다"


@pytest.mark.parametrize("name", ["날짜", "date"])
@pytest.mark.parametrize(
    ("days", "dates"),
    [
        (("44197", "44198"), ("2021-01-01T00:00:00Z", "2021-01-02T00:00:00Z")),
        (("44197.5", "44198.25"), ("2021-01-01T12:00:00Z", "2021-01-02T06:00:00Z")),
        (("44197.0", "2021-01-02"), ("2021-01-01T00:00:00Z", "2021-01-02T00:00:00Z")),
    ],
)
def test_days_of_a_spreadsheet_are_dates_where_a_column_is_called_so(
    folder: Folder, name: str, days: tuple[str, str], dates: tuple[str, str]
) -> None:
    rows = "".join(f"{40000 + at},{day},봄이 오면 도로에 나간다\n" for at, day in enumerate(days))
    folder.take("a.csv", f"조회,{name},본문\n{rows}")
    assert tuple(line["date"] for line in folder.lines()) == dates
    folder.out.unlink()
    message = folder.refuses("a.csv", rows.replace("2021-01-02", "44198").join(["a,b,본문\n", ""]))
    assert "no column of dates" in message


@pytest.mark.parametrize("names", ["년,월,일", "연도,월,일", "Year,Month,Day"])
@pytest.mark.parametrize("form", ["{}", "{:02}"])
def test_year_month_and_day_may_have_a_column_each(folder: Folder, names: str, form: str) -> None:
    rows = [f"2024,{form.format(2)},{form.format(day)},봄이 오면 나간다\n" for day in (28, 29, 30)]
    result = folder.take("a.csv", f"{names},본문\n{''.join(rows)}", timezone="Asia/Seoul")
    assert [line["date"] for line in folder.lines()] == ["2024-02-28", "2024-02-29"]
    assert result.wrong == {"no date that can be read": 1}


SHEET_2003 = """<?xml version="1.0" encoding="{encoding}"?>
<?mso-application progid="Excel.Sheet"?>
<Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet"
 xmlns:ss="urn:schemas-microsoft-com:office:spreadsheet"><Styles><Style ss:ID="a"/></Styles>
<Worksheet ss:Name="1"><{p}Table>{rows}</{p}Table></Worksheet></Workbook>"""


@pytest.mark.parametrize("prefix", ["", "ss:"])
@pytest.mark.parametrize("encoding", ["utf-8", "euc-kr"])
def test_a_spreadsheet_of_2003_in_xml(folder: Folder, prefix: str, encoding: str) -> None:
    def row(*cells: str) -> str:
        return f"<{prefix}Row>{''.join(cells)}</{prefix}Row>"

    def cell(text: str, kind: str = "String", place: str = "") -> str:
        data = f'<{prefix}Data ss:Type="{kind}">{text}</{prefix}Data>'
        return f"<{prefix}Cell{place}>{data}</{prefix}Cell>"

    rows = row(cell("일자"), cell("제목"), cell("본문"))
    rows += row(cell("2024-03-01T09:30:00.000", "DateTime"), cell("봄"), cell("봄이 &lt;왔다&gt;"))
    rows += row(cell("2024-03-02"), cell("봄이 또 왔다", place=' ss:Index="3"'))
    text = SHEET_2003.format(encoding=encoding, p=prefix, rows=rows)
    folder.take("a.xls", text.encode(encoding))
    assert [(each["date"], each.get("title"), each["text"]) for each in folder.lines()] == [
        ("2024-03-01T09:30:00Z", "봄", "봄이 <왔다>"),
        ("2024-03-02T00:00:00Z", None, "봄이 또 왔다"),
    ]


@pytest.mark.parametrize("first", [[], [["2024년 자료"], ["작성: 여론"]], None])
def test_the_first_sheet_with_records_that_is_shown_counts(
    folder: Folder, first: list[list[str]] | None
) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book, file = openpyxl.Workbook(), io.BytesIO()
    for row in [["a", "b"], [1, 2]] if first is None else first:
        book.active.append(row)
    table = book.create_sheet("자료")
    for row in (["일자", "본문"], [20240301, "봄이 오면"], [20240302, "꽃이 핀다"]):
        table.append(row)
    if first is None:
        book.active.sheet_state = "hidden"
    book.save(file)
    folder.take("a.xlsx", file.getvalue())
    assert [each["text"] for each in folder.lines()] == ["봄이 오면", "꽃이 핀다"]


@pytest.mark.parametrize("name", ["a.csv.zst", "a.jsonl.zst"])
def test_files_packed_by_zstandard_in_one_frame_or_several(folder: Folder, name: str) -> None:
    lines = [json.dumps({"date": f"2024-03-0{day}", "text": f"봄이 온다 {day}"}) for day in (1, 2)]
    table = ["date,text\n2024-03-01,봄이 온다 1\n", "2024-03-02,봄이 온다 2\n"]
    parts = [f"{line}\n" for line in lines] if "json" in name else table
    folder.take(name, b"".join(zstandard.compress(part.encode()) for part in parts))
    assert [each["text"] for each in folder.lines()] == ["봄이 온다 1", "봄이 온다 2"]


MAIL = "Received: from a by b; Fri, 1 Mar 2024 09:30:00 +0900\nFrom: a@news.example\nSubject: 봄\n"


def test_a_mail_that_is_a_file_of_its_own(folder: Folder) -> None:
    folder.take("a.eml", f"{MAIL}Content-Type: text/plain; charset=utf-8\n\n봄이 온다\n")
    [mail] = folder.lines()
    assert (mail["date"], mail["title"], mail["text"]) == (
        "2024-03-01T00:30:00Z",
        "봄",
        "봄이 온다",
    )


def test_a_mail_whose_plain_part_is_empty_has_the_text_of_the_other(folder: Folder) -> None:
    part = "--B\nContent-Type: text/{}; charset=utf-8\n\n{}\n"
    parts = part.format("plain", "") + part.format("html", "<p>봄이 온다</p>")
    folder.take("a.eml", f"{MAIL}Content-Type: multipart/alternative; boundary=B\n\n{parts}--B--")
    assert [each["text"] for each in folder.lines()] == ["봄이 온다"]


SPRING = [{"date": f"2024-03-0{day}", "text": f"봄이 온다 {day}"} for day in (1, 2)]


@pytest.mark.parametrize(
    "value",
    [
        {"-Na1": SPRING[0], "-Na2": SPRING[1]},
        {"2024-02": SPRING[:1], "2024-03": SPRING[1:]},
        [{**one, "text": one["text"].split(" ", 1)} for one in SPRING],
    ],
)
def test_records_by_key_lists_by_month_and_texts_in_parts(folder: Folder, value: object) -> None:
    folder.take("a.json", json.dumps(value))
    found = [" ".join(each["text"].split()) for each in folder.lines()]
    assert found == ["봄이 온다 1", "봄이 온다 2"]


def test_text_in_cdata_is_text(folder: Folder) -> None:
    folder.take(
        "a.jsonl", json.dumps({"date": "2024-03-01", "text": "<![CDATA[봄이 <b>온다</b>]]>"})
    )
    assert [each["text"] for each in folder.lines()] == ["봄이 온다"]
