import gzip
import zlib

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from embedding.crawl.unpack import Unpacker
from embedding.kernel.errors import FetchError

PACK = {
    "": lambda data: data,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


def unpack(encoding: str, data: bytes, limit: int = 10_000, size: int = 7) -> bytes:
    packed = Unpacker(encoding, limit)
    for at in range(0, len(data), size):
        packed.feed(data[at : at + size])
    return packed.body()


@pytest.mark.parametrize("encoding", PACK)
@given(data=st.binary(max_size=2000), size=st.integers(1, 3000))
def test_every_encoding_round_trips_in_any_parts(encoding: str, data: bytes, size: int) -> None:
    assert unpack(encoding, PACK[encoding](data), size=size) == data


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@given(parts=st.lists(st.binary(max_size=900), min_size=1, max_size=4), size=st.integers(1, 3000))
def test_one_packed_part_behind_another_is_read(encoding: str, parts: list, size: int) -> None:
    assert unpack(encoding, b"".join(map(PACK[encoding], parts)), size=size) == b"".join(parts)


@pytest.mark.parametrize("encoding", PACK)
def test_a_bomb_stops_at_the_limit(encoding: str) -> None:
    bomb = PACK[encoding](bytes(50_000_000))
    with pytest.raises(FetchError) as caught:
        unpack(encoding, bomb, limit=1_000_000, size=65536)
    assert caught.value.reason == "too_large"


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
def test_broken_or_cut_bodies_are_refused(encoding: str) -> None:
    whole = PACK[encoding](bytes(range(256)) * 8)
    for data in (whole[: len(whole) // 2], b"\x07nonsense" * 20):
        with pytest.raises(FetchError) as caught:
            unpack(encoding, data)
        assert caught.value.reason == "bad_encoding"


def test_raw_deflate_is_read_too() -> None:
    data = "여론".encode() * 50
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    assert unpack("deflate", packer.compress(data) + packer.flush()) == data


def test_truncation_keeps_the_beginning() -> None:
    packed = Unpacker("", 5, truncate=True)
    assert packed.feed(b"abc")
    assert not packed.feed(b"defgh")
    assert packed.body(whole=False) == b"abcde"


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=4), st.integers(1, 500))
def test_all_members_of_a_gzip_file_are_read(members: list[bytes], size: int) -> None:
    packed = b"".join(map(gzip.compress, members)) + bytes(16)
    assert unpack("gzip", packed, size=size) == b"".join(members)


@pytest.mark.parametrize("name", ["utf-8", "none", "compress", "identity", "aws-chunked"])
def test_an_encoding_that_is_none_leaves_the_page(name: str) -> None:
    assert unpack(name, "<p>글</p>".encode()) == "<p>글</p>".encode()


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
@pytest.mark.parametrize("text", ["<p>x</p>", "<!DOCTYPE html><p>글</p>", "여론은 움직인다"])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_page_that_is_not_packed_in_spite_of_its_header(name: str, text: str, size: int) -> None:
    assert unpack(name, text.encode(), size=size) == text.encode()


@pytest.mark.parametrize("inner", ["gzip", "br", "zstd", "deflate"])
@pytest.mark.parametrize("outer", ["gzip", "br", "zstd", "deflate"])
def test_encodings_over_each_other(inner: str, outer: str) -> None:
    data = "여론".encode() * 50
    assert unpack(f"{inner}, {outer}", PACK[outer](PACK[inner](data))) == data


def test_a_bomb_in_a_bomb_stops_at_the_limit() -> None:
    bomb = gzip.compress(gzip.compress(bytes(50_000_000)))
    with pytest.raises(FetchError) as caught:
        unpack("gzip, gzip", bomb, limit=10_000, size=65536)
    assert caught.value.reason == "too_large"


@pytest.mark.parametrize("name", ["gzip", "deflate"])
def test_gzip_and_deflate_are_told_apart_by_their_bytes(name: str) -> None:
    for pack in (gzip.compress, zlib.compress):
        assert unpack(name, pack(b"one")) == b"one"


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
@pytest.mark.parametrize("packed", ["gzip", "zstd", "deflate", "raw"])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_an_answer_that_is_packed_in_another_way_than_it_says(
    name: str, packed: str, size: int
) -> None:
    data = "<p>여론은 움직인다</p>".encode() * 30
    raw = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    body = raw.compress(data) + raw.flush() if packed == "raw" else PACK[packed](data)
    assert unpack(name, body, size=size) == data


@pytest.mark.parametrize("name", ["gzip", "br", "zstd"])
def test_an_empty_answer_is_empty_whatever_it_says(name: str) -> None:
    assert unpack(name, b"") == b""
