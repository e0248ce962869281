"""A newcomer's question: what docs/extending.md says is done in a copy of the tree, and asked."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from shutil import copytree, ignore_patterns

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(
    r"```(?:python|html)\n(?:# |<!-- )(embedding/\S+?)(, [^\n]*?)?(?: -->)?\n(.*?)```", re.S
)
ASK = """
import json, sys
from pathlib import Path
from fastapi import Depends
from starlette.testclient import TestClient
from embedding.web.app import create_app
from embedding.web.config import WebConfig

config = WebConfig(snapshots=sys.argv[1], token_file=Path("token"))
client = TestClient(create_app(config, dependencies=[Depends(lambda: None)]))
found = {path: client.get(path).text for path in ("/share", "/share?id=2020-01", "/share?lang=ko")}
found["api"] = client.get("/api/v1/share").json()
schema = client.get("/api/v1/openapi.json").json()["paths"]["/api/v1/share"]["get"]
print(json.dumps([found, schema]))
"""


def blocks() -> list[tuple[str, str, str]]:
    """File, place in it, and what comes there."""
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    section = page.partition("### A question of the page")[2].partition("\n## ")[0]
    return BLOCK.findall(section)


def test_a_question_is_added_by_three_files(config, tmp_path: Path) -> None:
    copytree(ROOT / "embedding", tmp_path / "embedding", ignore=ignore_patterns("__pycache__"))
    written = blocks()
    assert len({file for file, _, _ in written}) == 3
    for file, place, text in written:
        path = tmp_path / file
        known = path.read_text(encoding="utf-8") if path.exists() else ""
        if place == ", above QUESTIONS":
            text = known.replace("\nQUESTIONS:", f"\n{text}\n\nQUESTIONS:", 1)
        elif place == ", in QUESTIONS":
            text = re.sub(r"(\nQUESTIONS: [^\n]*\{\n)", rf"\1{text}", known, count=1)
        elif place:
            name = re.search(r"page_of\((\w+)", text)[1]
            text = f"{known}\n\nfrom embedding.ask.questions import {name}\n{text}"
        path.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", ASK, config.snapshots],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pages, schema = json.loads(done.stdout)
    assert sum(pages["api"].values()) > 0.999
    for source, share in pages["api"].items():
        assert f"{source}: {100 * share:.0f} %" in pages["/share"]
    assert "Who wrote it" in pages["/share?id=2020-01"] or "누가 썼나" in pages["/share?id=2020-01"]
    assert "누가 썼나" in pages["/share?lang=ko"]
    assert schema["summary"] == "Who wrote a window"
    assert [one["name"] for one in schema["parameters"]] == ["id"]
