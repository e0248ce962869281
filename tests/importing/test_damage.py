"""One thing that is wrong costs itself alone, and the reason that is given is the true one."""

import base64
import bz2
import gzip
import io
import json
import lzma
import time
import zipfile
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import brotli
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import Workbook
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from embedding.importing.delimited import _layout
from embedding.importing.importing import ImportRequest, ImportResult, plan_import, run_import
from embedding.importing.readers import READERS, ReadOptions
from embedding.kernel.errors import YeoronError

HEAD = "date,text\n"
GOOD = [f"2024-01-{day % 28 + 1:02},평범한 글을 하나 적어 보았다 {day}\n" for day in range(60)]


def take(folder: Path, name: str, data: bytes | str, **more: object) -> ImportResult:
    folder.mkdir(exist_ok=True)
    out = folder / "corpus.jsonl"
    out.unlink(missing_ok=True)
    file = folder / name
    file.write_bytes(data.encode() if isinstance(data, str) else data)
    request = ImportRequest(files=(file,), out=out, key=b"key", **more)  # type: ignore[arg-type]
    return run_import(request, plan_import(request), lambda *_: None)


def lines(folder: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in (folder / "corpus.jsonl").read_text("utf-8").splitlines()]


WRONG = {
    "too many values": "2024-02-01,한,줄\n".encode(),
    "too many values, broken": "2024-02-01,깨진,줄\n".encode("cp949"),
    "broken bytes": "2024-02-01,깨진 줄이다\n".encode("cp949"),
    "no date": "2024-02-30,없는 날이다\n".encode(),
}


@given(st.dictionaries(st.integers(0, 60), st.sampled_from(sorted(WRONG)), max_size=5))
@settings(max_examples=30)
def test_each_wrong_line_costs_itself_alone(
    tmp_path_factory: pytest.TempPathFactory, wrong: dict[int, str]
) -> None:
    rows = [line.encode() for line in GOOD]
    for at, kind in sorted(wrong.items(), reverse=True):
        rows.insert(at, WRONG[kind])
    result = take(tmp_path_factory.mktemp("x"), "a.csv", HEAD.encode() + b"".join(rows))
    assert (result.records, sum(result.wrong.values())) == (60, len(wrong))


@pytest.mark.parametrize("megabytes", [2, 20])
def test_a_long_record_does_not_refuse_the_rest(tmp_path: Path, megabytes: int) -> None:
    long = f'2024-02-01,"{"긴 글이다 " * (megabytes * 80_000)}"\n'
    result = take(tmp_path, "a.csv", HEAD + "".join(GOOD[:30]) + long + "".join(GOOD[30:]))
    assert result.records + sum(result.wrong.values()) == 61
    assert result.records >= 60


def test_a_quote_that_is_not_closed_costs_its_line(tmp_path: Path) -> None:
    rest = "2024-01-03,more words here\n" * 700_000
    result = take(tmp_path, "a.csv", HEAD + '2024-01-01,x y z w\n2024-01-02,"open\n' + rest)
    assert result.records == 700_001
    assert dict(result.wrong) == {"a quote is opened and not closed within 16 MB": 1}


def test_nul_bytes_are_left_out_and_binary_data_is_refused(tmp_path: Path) -> None:
    table = "date,text,x\n" + "".join(
        f"2024-01-{d:02},글이 하나 있다 {d},\0\n" for d in range(1, 20)
    )
    assert take(tmp_path, "a.csv", table).records == 19
    assert "\0" not in (tmp_path / "corpus.jsonl").read_text()
    with pytest.raises(YeoronError, match="binary data"):
        take(tmp_path, "b.csv", bytes(range(32)) * 100)


@given(st.sets(st.integers(0, 59), min_size=1, max_size=4), st.sampled_from(["date", "text"]))
@settings(max_examples=30)
def test_a_quote_that_is_not_closed_swallows_no_other_record(
    tmp_path_factory: pytest.TempPathFactory, places: set[int], where: str
) -> None:
    rows = [
        f'"{line}' if where == "date" else line.replace(",", ',"')
        for line in (f"{GOOD[at]}" for at in sorted(places))
    ]
    whole = list(GOOD)
    for at, row in zip(sorted(places, reverse=True), reversed(rows), strict=True):
        whole.insert(at, row)
    result = take(tmp_path_factory.mktemp("x"), "a.csv", HEAD + "".join(whole))
    assert (result.records, sum(result.wrong.values())) == (60, len(places))
    assert set(result.wrong) <= {
        "a quote is opened and not closed",
        "the file ends in the middle of it",
    }


def test_a_text_of_several_lines_may_name_days(tmp_path: Path) -> None:
    text = "첫 줄이다\n2024년 1월 2일, 둘째 줄이다\n2024.01.03, 셋째 줄이다"
    take(tmp_path, "a.csv", HEAD + "".join(GOOD) + f'2024-02-01,"{text}"\n')
    assert lines(tmp_path)[-1]["text"] == text


JSON_GOOD = [json.dumps({"date": f"2024-01-{d:02}", "text": f"글이 있다 {d}"}) for d in range(1, 9)]
JSON_FAULTS = {
    "zeros": ("\0\0", ""),
    "no object": ("# 글", "no JSON"),
    "open": ('{"date": "2024-01-01", "text": "글', "no JSON"),
    "comma at its end": ('{"date": "2024-01-01",', "no JSON"),
    "broken bytes": ('{"date": "2024-01-01", "text": "\udcff"}', "bytes that are no text"),
    "list": ("[1, 2]", "no JSON object"),
    "deep": ("[" * 3000, "no JSON"),
}


@pytest.mark.parametrize("plain", [True, False])
@given(st.dictionaries(st.integers(0, 8), st.sampled_from(sorted(JSON_FAULTS)), max_size=3))
@settings(max_examples=25)
def test_each_wrong_line_of_json_costs_itself_alone(
    tmp_path_factory: pytest.TempPathFactory, plain: bool, wrong: dict[int, str]
) -> None:
    rows = [row if plain else json.dumps(json.loads(row), ensure_ascii=False) for row in JSON_GOOD]
    # A single line that is not ASCII, and broken, says nothing of the file's encoding.
    wrong = {at: kind for at, kind in wrong.items() if not plain or kind != "broken bytes"}
    for at, kind in sorted(wrong.items(), reverse=True):
        rows.insert(at, JSON_FAULTS[kind][0])
    data = "\n".join([*rows, ""]).encode(errors="surrogateescape")
    result = take(tmp_path_factory.mktemp("x"), "a.jsonl", data)
    assert result.records == 8
    expected = [JSON_FAULTS[kind][1] for kind in wrong.values() if JSON_FAULTS[kind][1]]
    if "list" not in wrong.values() and 0 not in wrong:
        assert sorted(result.wrong.elements()) == sorted(expected)


@pytest.mark.parametrize("between", [",\n", "\r", "\r\n", "\n\x1e", "\n\ufeff", "", " ", "\n\n,\n"])
def test_objects_one_behind_the_other(tmp_path: Path, between: str) -> None:
    result = take(tmp_path, "a.jsonl", between.join(JSON_GOOD))
    assert (result.records, dict(result.wrong)) == (8, {})
    pretty = between.join(json.dumps(json.loads(row), indent=1) for row in JSON_GOOD)
    assert take(tmp_path, "b.json", pretty).records == 8


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda text: text.replace('"글이 있다 4"', "글"), "no JSON"),
        (lambda text: text.replace("있다 4", "\\있다 4"), "no JSON"),
        (lambda text: text[:-20], "the file ends in the middle of it"),
        (lambda text: text.replace("있다 4", "있다 \udcff"), "bytes that are no text"),
        (lambda text: text.replace("}, ", "} "), ""),
        (lambda text: text.replace("]", ",]"), ""),
        (lambda text: text + "<!-- 끝 -->", ""),
        (lambda text: text + "\0", ""),
        (lambda text: text.replace("글이 있다 4", "글이\n있다\t4"), ""),
    ],
)
def test_a_fault_in_a_list_of_objects_costs_one_of_them(
    tmp_path: Path, edit: Callable[[str], str], reason: str
) -> None:
    rows = [json.loads(row) for row in JSON_GOOD]
    text = edit(json.dumps(rows, ensure_ascii=False))
    result = take(tmp_path, "a.json", text.encode(errors="surrogateescape"))
    assert dict(result.wrong) == ({reason: 1} if reason else {})
    assert result.records == 8 - bool(reason)


def test_a_hostile_list_ends(tmp_path: Path) -> None:
    before = time.process_time()
    with pytest.raises(YeoronError, match="not valid JSON"):
        take(tmp_path, "a.json", '[{"a":' * 200_000)
    assert time.process_time() - before < 20


@pytest.mark.parametrize("encoding", ["utf-8", "cp949", "utf-16-le", "utf-16-be", "utf-32-le"])
def test_zeros_that_strayed_into_a_text_say_nothing_of_its_encoding(
    tmp_path: Path, encoding: str
) -> None:
    for text in ("평범한 글을 하나 적어 보았다", "a few plain words in a row"):
        rows = [f"2024-01-{day:02},{text} {day}\n" for day in range(1, 9)]
        table = HEAD + "".join(rows[:4]) + "\0\n" + "".join(rows[4:])
        assert take(tmp_path, "a.csv", table.encode(encoding)).records == 8
        assert lines(tmp_path)[4]["text"] == f"{text} 5"


def test_a_table_whose_lines_end_as_old_macs_have_it(tmp_path: Path) -> None:
    assert take(tmp_path, "a.csv", (HEAD + "".join(GOOD)).replace("\n", "\r")).records == 60


def test_a_record_of_another_width_costs_none_that_end_otherwise(tmp_path: Path) -> None:
    for end in ("\r", "\r\n", "\n"):
        result = take(tmp_path, "a.csv", HEAD + "x\n" + "".join(GOOD).replace("\n", end))
        assert (result.records, dict(result.wrong)) == (60, {"1 values for 2 columns": 1})


def test_odd_records_without_end_are_all_counted(tmp_path: Path) -> None:
    result = take(tmp_path, "a.csv", HEAD + GOOD[0] + "x\n" * 300_000 + "".join(GOOD[1:]))
    assert (result.records, dict(result.wrong)) == (60, {"1 values for 2 columns": 300_000})


def numbered(file: Path) -> tuple[list[tuple[int, str]], list[int]]:
    """Numbers and texts of a table's records, and numbers of those that are left out."""
    read = list(READERS.get("csv")(file, ReadOptions(), 0))
    good = (raw for raw in read if raw.numbers)
    texts = (zip(raw.numbers, raw.columns["text"].to_pylist(), strict=True) for raw in good)
    return [*chain(*texts)], [record.number for raw in read for record in raw.wrong]


def test_odd_records_that_are_long_cost_no_others_and_move_none(tmp_path: Path) -> None:
    """Blocks of them alone, before, between and behind blocks with good records."""
    good = [f"2024-01-02,글을 하나 적어 보았다 {i} {'가' * 200}\n" for i in range(3000)]
    odd = [f"2024-01-02,{'나' * 400}\n".replace(",", ",,") for _ in range(2000)]
    file = tmp_path / "a.csv"
    file.write_text(HEAD + "".join([*odd, *good[:2000], *odd, *good[2000:], *odd]), "utf-8")
    texts, wrong = numbered(file)
    assert [f"2024-01-02,{text}\n" for _, text in texts] == good
    assert [number for number, _ in texts] == [*range(2000, 4000), *range(6000, 7000)]
    assert wrong == [*range(2000), *range(4000, 6000), *range(7000, 9000)]


@pytest.mark.parametrize("broken", [b"", b"2024-02-01,\xea\xb0\x80\xff\n"])
def test_a_replacement_character_that_was_written_is_text(tmp_path: Path, broken: bytes) -> None:
    """Wherever bytes that are no text stand in the file."""
    rows = "".join(GOOD).replace("글", "\ufffd") * 100
    result = take(tmp_path, "a.csv", (HEAD + "x\n" + rows).encode() + broken)
    lost = {"bytes that are no text": 1} if broken else {}
    assert result.records == 6000
    assert dict(result.wrong) == {"1 values for 2 columns": 1, **lost}
    row = '{"date": "2024-01-01", "text": "글 \ufffd"}\n' * 100
    result = take(tmp_path, "a.jsonl", row.encode() + broken.replace(b"2024", b"{"))
    assert result.records == 100


@pytest.mark.parametrize(
    ("end", "whole"),
    [("", True), ('""', True), ('"', False), ('""""', True), ('"""', False), ('"x"""', True)],
)
def test_a_last_value_without_a_line_end(tmp_path: Path, end: str, whole: bool) -> None:
    """It is whole unless its quote is open: of quotes alone, where their number is odd."""
    rows = "".join(line.replace("\n", ",x\n") for line in GOOD)
    result = take(tmp_path, "a.csv", f"date,text,note\n{rows}2024-02-01,마지막 글이다,{end}")
    assert result.records == 60 + whole
    assert dict(result.wrong) == ({} if whole else {"the file ends in the middle of it": 1})


@pytest.mark.parametrize("above", ["\n", "\r\n\r\n", "\0\n", "\ufeff\n", "\n" * 30])
@pytest.mark.parametrize("odd", ["", "x,y\n"])
def test_empty_lines_above_a_column_are_none_of_its_records(
    tmp_path: Path, above: str, odd: str
) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f"{above}text\n글 하나\n{odd}글 둘\n", "utf-8")
    second = 2 if odd else 1
    assert numbered(file) == ([(0, "글 하나"), (second, "글 둘")], [1] if odd else [])


def test_an_encoding_is_found_behind_many_plain_lines(tmp_path: Path) -> None:
    plain = "2024-01-01,plain words in a long row of nothing\n" * 20_000
    korean = "2024-01-02,여기부터 한글이 나온다\n" * 20
    result = take(tmp_path, "a.csv", HEAD.encode() + plain.encode() + korean.encode("cp949"))
    assert result.records == 20_020
    assert lines(tmp_path)[-1]["text"] == "여기부터 한글이 나온다"


def test_a_guess_is_named(tmp_path: Path) -> None:
    french = "".join(f"2024-01-{d:02},café naïve résumé déjà vu {d}\n" for d in range(1, 20))
    result = take(tmp_path, "a.csv", (HEAD + french).encode("cp1252"))
    assert lines(tmp_path)[0]["text"] == "café naïve résumé déjà vu 1"
    assert "cp1252" in result.notes[0]
    assert "--encoding" in result.notes[0]
    assert take(tmp_path, "b.csv", HEAD + "".join(GOOD)).notes == []


def test_markup_is_no_words(tmp_path: Path) -> None:
    row = {
        "date": "2024-03-01",
        "content_html": "<p>좋은 글<br>감사합니다&nbsp;정말 &amp; 응원</p>",
    }
    take(tmp_path, "a.jsonl", json.dumps(row))
    assert lines(tmp_path)[0]["text"] == "좋은 글\n감사합니다 정말 & 응원"
    take(tmp_path, "b.csv", 'date,text\n2024-03-01,"3 < 5 이고 a<b 이다"\n')
    assert lines(tmp_path)[0]["text"] == "3 < 5 이고 a<b 이다"


@pytest.mark.parametrize("missing", ["NaN", "NULL", "None", "\\N", "#N/A", ""])
def test_a_value_that_is_missing_is_no_text(tmp_path: Path, missing: str) -> None:
    result = take(tmp_path, "a.csv", HEAD + f"2024-01-01,{missing}\n" + "".join(GOOD))
    assert (result.records, dict(result.wrong)) == (60, {"no text": 1})


@given(
    st.lists(
        st.text(st.characters(codec="utf-8"), min_size=4, max_size=20), min_size=1, max_size=9
    ),
    st.booleans(),
)
@settings(max_examples=25)
def test_json_by_columns_is_its_records(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], lists: bool
) -> None:
    dates = [f"2024-01-{at + 1:02}" for at in range(len(texts))]
    texts = [f"글 {text}" for text in texts]
    columns = {"date": dates, "text": texts}
    value = columns if lists else {n: dict(enumerate(c)) for n, c in columns.items()}
    folder = tmp_path_factory.mktemp("x")
    assert take(folder, "a.json", json.dumps(value)).records == len(texts)


def test_a_column_without_a_name_is_no_title(tmp_path: Path) -> None:
    rows = [{"": str(n), "date": f"2024-01-0{n}", "text": "one two three"} for n in (1, 2)]
    take(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows)))
    assert [set(line) for line in lines(tmp_path)] == [{"date", "text"}] * 2


def sheet(*rows: tuple[str, str]) -> bytes:
    book, held = Workbook(), io.BytesIO()
    for row in rows:
        book.active.append(row)
    book.save(held)
    return held.getvalue()


def test_what_other_spreadsheet_programs_write(tmp_path: Path) -> None:
    data = sheet(
        ("일자", "본문"), ("2024-01-01", "첫 줄이다_x000D_\n둘째 줄이다"), ("2024-01-02", "글 둘")
    )
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            start = part.find(b"<dimension")
            end = part.find(b"/>", start) + 2
            new.writestr(
                name, part if start < 0 else part[:start] + b'<dimension ref="A1"/>' + part[end:]
            )
    assert take(tmp_path, "a.xlsx", out.getvalue()).records == 2
    assert lines(tmp_path)[0]["text"] == "첫 줄이다\n둘째 줄이다"


def zipped(*files: tuple[str, str]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files:
            archive.writestr(name, text)
    return held.getvalue()


def test_what_file_managers_put_into_archives_does_not_count(tmp_path: Path) -> None:
    table = HEAD + "".join(GOOD)
    data = zipped(("a.csv", table), ("__MACOSX/._a.csv", "x"), (".DS_Store", "x"))
    assert take(tmp_path, "a.csv.zip", data).records == 60


def test_a_file_that_is_damaged_behind_its_head_costs_its_rest_alone(tmp_path: Path) -> None:
    table = (HEAD + "".join(GOOD) * 3000).encode()
    packed = bytearray(bz2.compress(table))
    packed[len(packed) // 2] ^= 255
    (tmp_path / "a.csv.bz2").write_bytes(packed)
    (tmp_path / "b.csv").write_text(HEAD + "".join(GOOD), "utf-8")
    files = (tmp_path / "a.csv.bz2", tmp_path / "b.csv")
    request = ImportRequest(files=files, out=tmp_path / "corpus.jsonl", encoding="utf-8")
    result = run_import(request, plan_import(request), lambda *_: None)
    assert 60 < result.records < 60 * 3000
    assert result.wrong["rest of a damaged file"] == 1
    assert "a.csv.bz2: damaged" in result.notes[0]


@pytest.mark.parametrize("kind", [".gz", ".xz", ".bz2", ".zip"])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.json"])
def test_what_was_unpacked_before_the_damage_is_read(tmp_path: Path, name: str, kind: str) -> None:
    """Bytes are turned in the checksum at the end; cut ones lack their end."""
    rows = [{"date": f"2024-01-{d % 28 + 1:02}", "text": f"글 {d * 7919}"} for d in range(9000)]
    table = HEAD + "".join(f"{row['date']},{row['text']}\n" for row in rows)
    text = {"a.csv": table, "a.jsonl": "\n".join(map(json.dumps, rows)), "a.json": json.dumps(rows)}
    data = text[name].encode()
    pack = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}
    packed = bytearray(zipped((name, text[name])) if kind == ".zip" else pack[kind](data))
    if kind == ".zip":
        packed[packed.rindex(b"PK\x01\x02") + 16] ^= 255
    elif kind == ".gz":
        packed[-6] ^= 255
    else:
        del packed[-4:]
    result = take(tmp_path, name + kind, bytes(packed))
    assert result.records >= (9000 if kind in (".zip", ".gz") else 1)
    assert set(result.wrong) <= {"rest of a damaged file", "the file ends in the middle of it"}
    assert result.wrong or name == "a.json"


def test_a_file_that_cannot_be_unpacked_says_so(tmp_path: Path) -> None:
    packed = zipped(("a.csv", HEAD + "".join(GOOD)))
    with pytest.raises(YeoronError, match="its end, which says what is in it, is missing"):
        take(tmp_path, "a.xlsx", PACKAGES["a.xlsx"][:-30])
    with pytest.raises(YeoronError, match="damaged, it cannot be unpacked"):
        take(tmp_path, "a.csv.zip", packed[:45])
    with pytest.raises(YeoronError, match="damaged, it cannot be unpacked"):
        take(tmp_path, "a.csv.gz", gzip.compress((HEAD + "".join(GOOD)).encode())[:30])


@pytest.mark.parametrize("name", ["글.csv", "a.tsv", "a.jsonl"])
def test_a_zip_whose_download_stopped_is_read_as_far_as_it_goes(tmp_path: Path, name: str) -> None:
    rows = [(f"2024-01-{d % 28 + 1:02}", f"글 {d * 7919}") for d in range(9000)]
    mark = "\t" if name == "a.tsv" else ","
    text = "".join(f"{one}\n" for one in ["date" + mark + "text", *map(mark.join, rows)])
    if name == "a.jsonl":
        text = "\n".join(json.dumps({"date": day, "text": written}) for day, written in rows)
    packed = zipped((name, text))
    whole = take(tmp_path, "download.zip", packed)
    assert (whole.records, whole.wrong) == (9000, {})
    without = take(tmp_path, "download.zip", packed[: packed.rindex(b"PK\x01\x02")])
    assert without.records == 9000
    half = take(tmp_path, "download.zip", packed[: len(packed) // 2])
    assert 2000 < half.records < 7000
    assert half.wrong == {"the file ends in the middle of it": 1}
    locked = bytearray(packed[:-10])
    locked[6] |= 1
    with pytest.raises(YeoronError, match="its end, which says what is in it, is missing"):
        take(tmp_path, "download.zip", bytes(locked))


TITLES = {
    "a title": "2024년 게시글 목록\n",
    "a title in the first cell": "게시글 목록,,,\n,,,\n",
    "what and how many": "게시글 목록\n\n총 60건\n",
    "a mark in the title": '"게시글 목록, 2024년",,,\n',
    "a comment": "# exported by a program\r\n",
}


@pytest.mark.parametrize("title", TITLES)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp949", "utf-16"])
def test_a_title_above_a_table_is_not_its_first_line(
    tmp_path: Path, title: str, encoding: str
) -> None:
    end = "\r\n" if "\r" in TITLES[title] else "\n"
    rows = [f"2024-01-{d % 28 + 1:02},게시판 {d},제목 {d},글을 적어 보았다 {d}" for d in range(60)]
    table = TITLES[title] + "".join(f"{row}{end}" for row in ["작성일,출처,제목,본문", *rows])
    result = take(tmp_path, "a.csv", table.encode(encoding))
    assert (result.records, result.wrong) == (60, {})
    assert {(one["title"][:2], one["source"][:3]) for one in lines(tmp_path)} == {
        ("제목", "게시판")
    }
    quote = table.replace("제목 7,글", '제목 7,"글')
    assert take(tmp_path, "a.csv", quote.encode(encoding)).records == 59


@pytest.mark.parametrize(
    "table",
    [
        "2024-01-01,,,\n" + "2024-01-02,제목,글을 하나 적어 보았다,x\n" * 5,
        "date,title,text\n" + "2024-01-02,제목,글을 하나 적어 보았다,\n" * 5,
        'date,"title\n(of all)",text,x\n' + "2024-01-02,제목,글을 하나 적어 보았다,x\n" * 5,
    ],
)
def test_a_sparse_first_line_is_no_title(table: str) -> None:
    layout = _layout(table, Path("a.csv"))
    assert layout.above == 0


def rewritten(data: bytes, edit: Callable[[str, bytes], bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, edit(name, old.read(name)))
    return out.getvalue()


def test_a_sheet_is_read_up_to_its_damage(tmp_path: Path) -> None:
    def cut(name: str, part: bytes) -> bytes:
        return part[: part.index(b'<row r="21"')] if name.endswith("sheet1.xml") else part

    result = take(tmp_path, "a.xlsx", rewritten(PACKAGES["a.xlsx"], cut))
    assert (result.records, sum(result.wrong.values())) == (19, 1)
    assert "cannot be read from here on" in result.examples[0]


@pytest.mark.parametrize("broken", ["docProps/core.xml", "docProps/app.xml", "xl/theme/theme1.xml"])
def test_what_is_no_part_of_the_table_may_be_broken(tmp_path: Path, broken: str) -> None:
    data = rewritten(PACKAGES["a.xlsx"], lambda name, part: b"<x" if name == broken else part)
    assert take(tmp_path, "a.xlsx", data).records == 50


@pytest.mark.parametrize(
    "edit",
    [
        lambda part: part[: len(part) // 2],
        lambda part: part.replace(b"<patternFill", b"<patternFil"),
        lambda part: b"",
    ],
)
def test_formats_of_a_spreadsheet_may_be_broken(
    tmp_path: Path, edit: Callable[[bytes], bytes]
) -> None:
    data = rewritten(
        PACKAGES["a.xlsx"], lambda name, part: edit(part) if name == "xl/styles.xml" else part
    )
    assert take(tmp_path, "a.xlsx", data).records == 50


PACKAGES = {
    "a.xlsx": sheet(("일자", "본문"), *(("2024-01-01", f"본문 {n} 글") for n in range(50))),
    "a.csv.zip": zipped(("a.csv", HEAD + "".join(GOOD))),
    "a.csv.gz": gzip.compress((HEAD + "".join(GOOD)).encode()),
    "a.csv.xz": lzma.compress((HEAD + "".join(GOOD)).encode()),
    "a.csv.bz2": bz2.compress((HEAD + "".join(GOOD)).encode()),
}


@pytest.mark.parametrize("name", sorted(PACKAGES))
@given(data=st.data())
@settings(max_examples=40)
def test_a_damaged_package_is_read_or_refused_in_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    raw = bytearray(PACKAGES[name])
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    cut = data.draw(st.integers(0, 40))
    refusal = ""
    try:
        take(tmp_path_factory.mktemp("x"), name, bytes(raw[: len(raw) - cut]))
    except YeoronError as error:
        refusal = str(error)
    assert not refusal or refusal.endswith(".")


BODY = (
    "<html><body><article><h1>제목</h1><p>"
    + "국회는 본회의를 열어 예산안을 처리했다. " * 12
    + "</p></article></body></html>"
).encode()


def archive(*answers: tuple[bytes, list[tuple[str, str]]], packed: bool = True) -> bytes:
    held = io.BytesIO()
    writer = WARCWriter(held, gzip=packed)
    for number, (body, more) in enumerate(answers):
        kind = ("Content-Type", "text/html; charset=utf-8")
        http = StatusAndHeaders("200 OK", [kind, *more], protocol="HTTP/1.1")
        record = writer.create_warc_record(
            f"http://news.example/{number}", "response", io.BytesIO(body), http_headers=http
        )
        writer.write_record(record)
    return held.getvalue()


def test_packed_pages_of_a_web_archive(tmp_path: Path) -> None:
    data = archive(
        (BODY, []),
        (brotli.compress(BODY), [("Content-Encoding", "br")]),
        (gzip.compress(BODY), [("Content-Encoding", "gzip")]),
        (b"\x1f\x8bnonsense", [("Content-Encoding", "gzip")]),
        (BODY, [("Content-Encoding", "utf-8")]),
    )
    result = take(tmp_path, "a.warc.gz", data)
    assert (result.records, sum(result.wrong.values())) == (4, 1)


def test_an_archive_that_was_packed_anew_as_a_whole(tmp_path: Path) -> None:
    plain = archive((BODY, []), (BODY, []), (BODY, []), packed=False)
    assert take(tmp_path, "a.warc.gz", gzip.compress(plain)).records == 3


def mail(charset: str, body: bytes, subject: bytes = b"x") -> bytes:
    kind = f"Content-Type: text/plain; charset={charset}\n".encode() if charset else b""
    return (
        b"From a@news.example Mon Jan  1 00:00:00 2024\nFrom: a@news.example\n"
        b"Date: Mon, 01 Jan 2024 09:00:00 +0900\nSubject: "
        + subject
        + b"\n"
        + kind
        + b"Content-Transfer-Encoding: 8bit\n\n"
        + body
        + b"\n\n"
    )


def test_headers_and_parts_without_end_cost_a_mail_little(tmp_path: Path) -> None:
    """Hours without a bound."""
    subject = b"=?utf-8?b?4K6x?= " * 1_000_000
    part = b"--x\nContent-Type: multipart/mixed; boundary=x\n\n"
    many = mail("", part * 500_000).replace(
        b"8bit\n", b"8bit\nContent-Type: multipart/mixed; boundary=x\n"
    )
    whole = mail("utf-8", "좋은 글".encode(), subject) + many + mail("utf-8", "다음 글".encode())
    result = take(tmp_path, "a.mbox", whole)
    assert [line["text"] for line in lines(tmp_path)] == ["좋은 글", "다음 글"]
    assert dict(result.wrong) == {"a mail of more than 100 parts in parts": 1}


@pytest.mark.parametrize(
    "charset", ["ks_c_5601-1987", "euc-kr", "", "x-unknown", "us-ascii", "utf-8"]
)
@pytest.mark.parametrize("written", ["cp949", "utf-8"])
def test_korean_mail_under_any_name(tmp_path: Path, charset: str, written: str) -> None:
    text = "똠방각하와 펲시콜라 이야기"
    take(tmp_path, "a.mbox", mail(charset, text.encode(written), "제목".encode(written)))
    assert [(line["title"], line["text"]) for line in lines(tmp_path)] == [("제목", text)]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (
            "これは日本語の文章です。今日の天気は晴れ、明日は雨が降るでしょう。経済と政治の話。",
            "euc_jp",
        ),
        ("这是一个用中文写的句子，里面有很多常见的汉字和标点符号，今天天气很好。", "gb18030"),
        ("這是一個用繁體中文寫的句子，裡面有很多常見的漢字和標點符號。", "big5"),
        ("여기에는 우리말로 쓴 글이 있고 여러 사람이 그것을 읽는다.", "cp949"),
    ],
)
def test_bytes_of_other_languages_are_not_taken_for_korean(
    tmp_path: Path, text: str, encoding: str
) -> None:
    rows = "".join(f"2024-01-{day:02},{text}\n" for day in range(1, 29))
    take(tmp_path, "a.csv", (HEAD + rows).encode(encoding))
    assert lines(tmp_path)[0]["text"] == text


@pytest.mark.parametrize("charset", ["EUC-KR", "ks_c_5601-1987", "x-unknown"])
def test_a_packed_subject_is_cp949_under_any_name(tmp_path: Path, charset: str) -> None:
    words = [base64.b64encode(part.encode("cp949")).decode() for part in ("똠방각하와 ", "펲시")]
    subject = "\n ".join(f"=?{charset}?B?{word}?=" for word in words)
    take(tmp_path, "a.mbox", mail("utf-8", "좋은 글".encode(), subject.encode()))
    assert lines(tmp_path)[0]["title"] == "똠방각하와 펲시"


def test_korean_that_is_called_latin_and_latin_that_is_none(tmp_path: Path) -> None:
    korean, french = (
        "여기에는 우리말로 쓴 글이 있고 여러 사람이 읽는다",
        "L'été dernier, à la forêt, voilà",
    )
    both = [
        mail("iso-8859-1", text.encode(name))
        for text, name in ((korean, "cp949"), (french, "latin-1"))
    ]
    take(tmp_path, "a.mbox", b"".join(both))
    assert [line["text"] for line in lines(tmp_path)] == [korean, french]


def test_the_zone_of_a_mail_counts_by_its_name(tmp_path: Path) -> None:
    take(tmp_path, "a.mbox", mail("utf-8", "좋은 글".encode()).replace(b"+0900", b"KST"))
    assert lines(tmp_path)[0]["date"] == "2024-01-01T00:00:00Z"


def test_a_page_in_parts_and_a_page_that_is_cut_off(tmp_path: Path) -> None:
    parts = b"%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n"
    data = archive((parts, [("Transfer-Encoding", "Chunked")]), (BODY, []), packed=False)
    result = take(tmp_path, "a.warc", data[:-400])
    assert result.records == 1
    assert dict(result.wrong) == {"the archive ends in the middle of it": 1}
