"""What is read is nowhere written: a node where nothing but its frontier can be written to, and a
look into every file that the node, the server and their logs have left.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import platformdirs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embedding.crawl.config import CrawlConfig
from embedding.crawl.frontier import Frontier
from embedding.kernel.config import WITH_SECRETS
from embedding.server.service import ParameterServer
from embedding.snapshots.evidence import EvidenceStore
from embedding.text.config import TextConfig
from embedding.worker.config import NodeConfig
from embedding.worker.spec import NodeSpec
from onenode import MODEL, RUN, serving, sources, windows
from waiting import until
from yeoron_simweb.testing import running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

HERE = Path(__file__).parents[1]
SENTENCES = (
    "표식가을 표식겨울 표식바다 표식하늘 표식구름",
    "표식골목 표식시장 표식손님 표식가게 표식물건",
    "planted marker words stand here together",
)
TITLE = "표식제목은 아무데도 남지 않는다"
PERSONAL = ("900101-1234567", "010-4321-8765", "marker.person@example.kr", "@marker_handle")
AUTHOR = "표식작성자이름"
BYLINE = f"\n{AUTHOR}{{}} 기자 planted.writer@example.kr"
"""Articles have one in their text besides those that the page has around it."""


def sealed() -> list[str]:
    """The command that seals everything but a folder; skips where the kernel refuses."""
    unshare = shutil.which("unshare")
    if sys.platform != "linux" or unshare is None:
        pytest.skip("mount namespaces are Linux's, by util-linux's unshare")
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    command = [unshare, *user, "--mount"]
    probe = [*command, "sh", "-c", "mount --make-rprivate / && mount -o remount,bind,ro /"]
    tried = subprocess.run(probe, capture_output=True, text=True, timeout=300)
    if tried.returncode:
        pytest.skip(f"the kernel gives no read-only mount namespace here: {tried.stderr.strip()}")
    return [*command, sys.executable, str(HERE / "readonly.py")]


def documents() -> list[dict[str, object]]:
    body = " ".join(f"{sentence}." for sentence in SENTENCES)
    personal = f"연락은 {PERSONAL[1]} 또는 {PERSONAL[2]} 주민번호 {PERSONAL[0]} {PERSONAL[3]} 로."
    return [
        {
            "date": f"2020-02-{1 + i % 27:02d}T{i % 24:02d}:00:00+00:00",
            "title": f"{TITLE} {i}",
            "text": f"{body} 번호{i} 글입니다. {personal}" + BYLINE.format(i % 4) * (i % 2 == 0),
            "author": f"{AUTHOR}{i % 4}",
            "part": ("politics", "comments")[i % 2],
        }
        for i in range(24)
    ]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ParameterServer]:
    with serving(tmp_path) as found:
        yield found


def test_a_node_that_can_write_only_its_frontier_reads_learns_and_leaves_no_text(
    server: ParameterServer, tmp_path: Path
) -> None:
    command = sealed()
    writable = tmp_path / "frontier"
    writable.mkdir()
    kernels = platformdirs.user_cache_path("yeoron")
    if kernels.is_dir():
        shutil.copytree(kernels, writable / "kernels", dirs_exist_ok=True)
    script = tmp_path / "node.py"
    script.write_text(RUN, encoding="utf-8")
    with running(None, documents()) as base:
        spec = NodeSpec(
            name="n0",
            server=server.location,
            sources=sources(base),
            crawl=CrawlConfig(
                frontier=f"sqlite:///{writable / 'frontier.db'}",
                allow_private_hosts=(base.removeprefix("http://"),),
                rate=200.0,
            ).model_copy(update={"near_window": 0, "dedupe_min_chars": 10_000}),
            text=TextConfig(tokenizer="whitespace"),
            model=MODEL,
            node=NodeConfig(flush_seconds=0.2).model_copy(
                update={"batch_seconds": 0.1, "report_seconds": 0.2}
            ),
            evidence=writable / "evidence",
        )
        with (tmp_path / "node.log").open("wb") as log:
            node = subprocess.Popen(
                [
                    *command,
                    str(writable),
                    sys.executable,
                    str(script),
                    spec.model_dump_json(context=WITH_SECRETS),
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "NUMBA_CACHE_DIR": str(writable / "kernels")},
            )
            try:
                wait_for_all(node, writable, tmp_path / "node.log")
                node.send_signal(signal.SIGTERM)
                assert node.wait(300) == 0
            finally:
                node.kill()
                node.wait(300)
    server.snapshotter.cut(next(iter(windows(server))))
    server.stop()
    left = {path.name for path in writable.iterdir()}
    database = {"frontier.db", "frontier.db-wal", "frontier.db-shm"}
    assert left - {"kernels"} <= {*database, "evidence"}
    look_at_evidence(writable / "evidence", tmp_path / "evidence.txt", server)
    assert server.state.meters.documents == 24
    assert "표식바다" in words_on_disk(tmp_path), "words are kept: the vocabulary is made of them"
    for path in files(tmp_path):
        look_for_text(path)


def look_at_evidence(folder: Path, unpacked: Path, server: ParameterServer) -> None:
    """Addresses by word are there; unpacked, for the look into every file that follows."""
    (window,) = windows(server)
    found = EvidenceStore(folder).find("표식바다", window.start, window.end)
    assert found
    assert all(one.url.startswith("http://127.0.0.1") for one in found)
    tables = [pq.read_table(path, partitioning=None) for path in folder.rglob("*.parquet")]
    unpacked.write_text("\n".join(str(t.to_pydict()) for t in tables), encoding="utf-8")


def wait_for_all(node: subprocess.Popen[bytes], writable: Path, log: Path) -> None:
    """Until every document is learnt and acknowledged."""

    def written() -> str:
        return log.read_text(encoding="utf-8")[-3000:]

    def done() -> bool:
        assert node.poll() is None, written()
        if not (writable / "frontier.db").exists():
            return False
        query = "SELECT status, count(*) FROM frontier_urls GROUP BY status"
        with closing(sqlite3.connect(writable / "frontier.db", timeout=10)) as database:
            try:
                return dict(database.execute(query)) == {"done": 24}
            except sqlite3.OperationalError:
                return False

    until(done, written)


def files(folder: Path) -> list[Path]:
    found = [path for path in folder.rglob("*") if path.is_file() and path.name != "node.py"]
    return [path for path in found if "kernels" not in path.parts]


def look_for_text(path: Path) -> None:
    """No planted sentence, title, author or piece of personal data, in whatever encoding."""
    held = contents(path)
    for planted in (*SENTENCES, TITLE, AUTHOR, *PERSONAL):
        for encoding in ("utf-8", "utf-16-le", "cp949"):
            assert planted.encode(encoding) not in held, (path, planted)
        escaped = planted.encode("unicode_escape")
        assert escaped == planted.encode() or escaped not in held, (path, planted)


def contents(path: Path) -> bytes:
    """The file's bytes, and those of its columns where it is an Arrow file (they may be packed)."""
    held = path.read_bytes()
    if held.startswith(b"ARROW1"):
        with pa.memory_map(str(path)) as source:
            table = pa.ipc.open_file(source).read_all()
        held += b"\0".join(str(column.to_pylist()).encode() for column in table.columns)
    return held


def words_on_disk(folder: Path) -> str:
    return " ".join(
        contents(path).decode(errors="replace") for path in files(folder) if "store" in path.parts
    )


def test_a_look_finds_what_is_planted(tmp_path: Path) -> None:
    """The scan itself: text in the log, in the frontier or in a packed column is found."""
    (tmp_path / "log").write_bytes(f"x {SENTENCES[0]} y".encode("cp949"))
    frontier = Frontier(f"sqlite:///{tmp_path / 'f.db'}")
    frontier.discover("s", [(TITLE, 1.0)], 1.0)
    frontier.close()
    table = pa.table({"word": [SENTENCES[1]] * 50})
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema, options=options) as writer:
        writer.write_table(table)
    for path in files(tmp_path):
        if path.suffix not in (".db-wal", ".db-shm"):
            with pytest.raises(AssertionError):
                look_for_text(path)
