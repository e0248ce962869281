"""Lines a second and memory of `yeoron import` for a generated CSV.

    python -m benchmarks import --lines 1000000

Each side is a process of its own, from the file on the disk to the corpus on the disk. `sorted` is
UTF-8 in order of time; `shuffled` is CP949 without order, which is brought into order at the end.
A quarter of the lines is read, too: memory is flat where both take the same.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.kept import RESULTS
from yeoron_bench.results import ended, facts, keep_and_print

PACKAGES = ("yeoron", "pyarrow", "numpy")
BEGIN, YEAR = datetime(2023, 1, 1, tzinfo=UTC), 365 * 86_400
SIDES = {"sorted": "utf-8", "shuffled": "cp949"}
WORDS = "봄 여름 가을 겨울 정부 시장 학교 병원 도로 나침반 사람 이야기 뉴스 기사 오늘 어제"
"""What the texts are made of."""
CHILD = """
import json, re, sys, time
from pathlib import Path
from embedding.importing.importing import ImportRequest, plan_import, run_import
began, cpu = time.perf_counter(), time.process_time()
request = ImportRequest(files=(Path(sys.argv[1]),), out=Path(sys.argv[2]), key=b"key")
result = run_import(request, plan_import(request), lambda *_: None)
print(json.dumps({
    "records": result.records,
    "seconds": time.perf_counter() - began,
    "cpu_seconds": time.process_time() - cpu,
    "peak_mb": int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024,
}))
"""


def write(path: Path, lines: int, side: str) -> None:
    """Date and time, site, author, title and a text of 20 to 60 words."""
    drawn = random.Random(1)
    texts = [" ".join(drawn.choices(WORDS.split(), k=drawn.randint(20, 60))) for _ in range(997)]
    order = list(range(lines))
    if side == "shuffled":
        drawn.shuffle(order)
    with path.open("w", encoding=SIDES[side]) as file:
        file.write("작성일,출처,작성자,제목,본문\n")
        for at in order:
            when = BEGIN + timedelta(seconds=at * YEAR // lines)
            name, text = f"사람{at % 5003}", texts[at % 997]
            file.write(f'{when:%Y-%m-%d %H:%M:%S},게시판{at % 7},{name},제목 {at},"{text} {at}"\n')


def run_side(side: str, lines: int, folder: Path) -> dict[str, Any]:
    source, out = folder / "posts.csv", folder / "corpus.jsonl"
    write(source, lines, side)
    out.unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(source), str(out)],
        capture_output=True,
        text=True,
        check=True,
    )
    run: dict[str, Any] = json.loads(done.stdout)
    return {
        "side": side,
        "lines": lines,
        **run,
        "megabytes": source.stat().st_size / 1e6,
        "lines_per_second": run["records"] / run["seconds"],
    }


def bench_import(lines: int, results: Path) -> dict[str, Any]:
    """Measure; write a dated JSON file and a table beside it, and print the table."""
    report: dict[str, Any] = {**facts("import", PACKAGES), "runs": []}
    with TemporaryDirectory() as folder:
        for side in SIDES:
            for count in (lines // 4, lines):
                report["runs"].append(run_side(side, count, Path(folder)))
    keep_and_print(report, results=results)
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    return ended(lambda: bench_import(given.lines, given.results))


if __name__ == "__main__":
    sys.exit(main())
