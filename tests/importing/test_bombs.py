"""What unpacks to far more than it holds takes no memory, and costs itself alone."""

import io
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from openpyxl import Workbook

from embedding.importing.readers import BATCH_CHARACTERS, READERS, TOO_LONG, ReadOptions
from embedding.kernel.errors import InputError

MEGABYTE = "가나 " * 300_000
N = 40


def read(path: Path) -> tuple[int, int, list[str]]:
    """Records of a file, the most bytes that are handed over at once, and why others are not."""
    records, most, wrong = 0, 0, []
    for raw in READERS.get(path.suffixes[0][1:])(path, ReadOptions(), 0):
        records += len(raw.numbers)
        most = max(most, sum(column.nbytes for column in raw.columns.values()))
        wrong += [each.reason for each in raw.wrong]
    return records, most, wrong


def table(path: Path, texts: pa.Array, **options: object) -> Path:
    dates = pa.array(["2024-01-01"] * len(texts))
    pq.write_table(pa.table({"date": dates, "text": texts}), path, **options)
    assert path.stat().st_size < 200_000
    return path


def test_a_long_text_that_many_rows_of_parquet_name_is_read_some_rows_at_a_time(
    tmp_path: Path,
) -> None:
    many = pa.DictionaryArray.from_arrays(np.zeros(N, np.int32), pa.array([MEGABYTE]))
    path = table(tmp_path / "a.parquet", many, compression="zstd")
    records, most, wrong = read(path)
    assert (records, wrong) == (N, [])
    assert most < 4 * BATCH_CHARACTERS  # bytes of a character in UTF-8


def test_a_column_of_parquet_that_unpacks_to_gigabytes_is_refused(tmp_path: Path) -> None:
    many = pa.array([MEGABYTE] * 150)
    path = table(tmp_path / "a.parquet", many, compression="zstd", use_dictionary=False)
    with pytest.raises(InputError, match=r"column 'text' unpacks to .* no text does\.$"):
        read(path)


def test_a_row_that_is_too_long_costs_itself_alone(tmp_path: Path) -> None:
    texts = pa.array(["짧은 글이다", MEGABYTE * 40, "또 하나의 글이다"])
    path = table(tmp_path / "a.parquet", texts, compression="zstd")
    records, _, wrong = read(path)
    assert (records, wrong) == (2, [TOO_LONG])


def spreadsheet(path: Path, change: Callable[[str, bytes], bytes]) -> Path:
    """A sheet of two rows, of whose parts each is changed."""
    book, held = Workbook(), io.BytesIO()
    for row in (("일자", "본문"), ("2024-01-01", "FIRST text"), ("2024-01-02", "둘째 글이다")):
        book.active.append(row)
    book.save(held)
    with zipfile.ZipFile(held) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    assert path.stat().st_size < 1_000_000
    return path


@pytest.mark.parametrize(
    ("part", "before", "more"),
    [
        ("xl/worksheets/sheet1.xml", b"</sheetData>", b"<row/>"),
        ("xl/worksheets/sheet1.xml", b"</row>", b"<c/>"),
        ("xl/worksheets/sheet1.xml", b"</t></is></c>", b"a"),
        ("xl/styles.xml", b"</styleSheet>", b"<x/>"),
    ],
)
def test_a_part_of_a_spreadsheet_that_unpacks_to_hundreds_of_megabytes_is_refused(
    tmp_path: Path, part: str, before: bytes, more: bytes
) -> None:
    def change(name: str, data: bytes) -> bytes:
        repeated = more * (40_000_000 // len(more))
        return data.replace(before, repeated + before, 1) if name == part else data

    with pytest.raises(InputError, match=f"{part!r} in it unpacks to [0-9]+ MB"):
        read(spreadsheet(tmp_path / "a.xlsx", change))


def test_entities_of_a_spreadsheet_are_not_expanded(tmp_path: Path) -> None:
    levels = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
    head = f'<!DOCTYPE x [<!ENTITY a0 "word ">{levels}]>'.encode()

    def change(name: str, data: bytes) -> bytes:
        sheet = name == "xl/worksheets/sheet1.xml"
        return head + data.replace(b"FIRST text", b"&a11;") if sheet else data

    with pytest.raises(InputError, match=r"^[^\n]*not a complete .xlsx file[^\n]*$"):
        read(spreadsheet(tmp_path / "a.xlsx", change))


def test_rows_and_columns_that_no_sheet_has_are_not_filled_up(tmp_path: Path) -> None:
    def change(name: str, data: bytes) -> bytes:
        return data.replace(b'<row r="3"', b'<row r="3000000000"')

    with pytest.raises(InputError, match="no sheet"):
        read(spreadsheet(tmp_path / "a.xlsx", change))


def test_lines_of_a_packed_file_are_read_some_at_a_time(tmp_path: Path) -> None:
    line = f'{{"date": "2024-01-01", "text": "{MEGABYTE}"}}\n'.encode()
    path = tmp_path / "a.jsonl.xz"
    with lzma.open(path, "wb") as file:
        for _ in range(N):
            file.write(line)
    records, most, wrong = read(path)
    assert (records, wrong) == (N, [])
    assert most < 4 * BATCH_CHARACTERS  # bytes of a character in UTF-8
