"""A tokenizer of another package on which some words have the worst of effects."""

from __future__ import annotations

from pathlib import Path

RAISES, KILLS, WORKS_ON, WAITS = "오류", "죽음", "매달림", "기다림"
"""Words that raise, end the process by a signal, use processor time, and wait, each without end."""
HOSTILE = "hostile"

_SOURCE = f"""
import os, signal, time
from embedding.text.pipeline import WhitespaceTokenizer

class HostileTokenizer(WhitespaceTokenizer):
    name = "{HOSTILE}"

    def tokenize(self, sentences):
        found = super().tokenize(sentences)
        words = set(word for sentence in found for word in sentence)
        if "{RAISES}" in words:
            raise ValueError("비밀")
        if "{KILLS}" in words:
            os.kill(os.getpid(), signal.SIGSEGV)
        while "{WORKS_ON}" in words:
            pass
        if "{WAITS}" in words:
            time.sleep(1e6)
        return found

from embedding.text.tokenizers import TOKENIZERS, TokenizerTraits
TOKENIZERS.register("{HOSTILE}", TokenizerTraits(always_runs=True))(HostileTokenizer)
"""


def install(folder: Path) -> str:
    """Write the package into a folder; what to put on PYTHONPATH."""
    about = folder / "yeoron_hostile-1.0.dist-info"
    about.mkdir()
    (folder / "yeoron_hostile.py").write_text(_SOURCE, encoding="utf-8")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: yeoron-hostile\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[yeoron.tokenizers]\n{HOSTILE} = yeoron_hostile\n")
    return str(folder)
