"""Names that are gone and packages that are wrong: one sentence, exit 2, nothing half-done."""

from __future__ import annotations

from pathlib import Path

import pytest

POLICY = """
from embedding.server.policies.base import Asp
from embedding.server.policies.traits import POLICIES, PolicyTraits


@POLICIES.register("{name}", PolicyTraits({traits}))
class Other(Asp):
    pass
"""


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("YEORON_SETTINGS", "")
    monkeypatch.delenv("YEORON_SETTINGS")  # `--settings` sets it: as it was after the test
    Path("c.txt").write_text("봄 여름 가을 겨울\n" * 50, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("train c.txt --sync sgd", "'sgd'"),
        ("train c.txt --directions 3", "--directions is no option any more; leave it out: 16"),
        ("--settings gone.toml status", "'mirror_bytes' is no setting any more; leave it out: the"),
    ],
)
def test_an_old_name_is_refused_with_what_to_write(yeoron, corpus, given, sentence) -> None:
    Path("gone.toml").write_text("server.mirror_bytes = 3\n")
    before = sorted(corpus.iterdir())
    done = yeoron(*given.split())
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("yeoron: ")
    assert sentence in " ".join(done.err.split())
    assert sorted(corpus.iterdir()) == before


@pytest.mark.parametrize(
    ("name", "module", "sentence"),
    [
        ("gossip", "import nowhere", "policy 'gossip' of wrong (entry point wrong_policy) cannot"),
        ("gossip", "", "its module registers no 'gossip'"),
        ("bsp", POLICY.format(name="bsp", traits=""), "'bsp' is registered by wrong (entry point"),
        (
            "gossip",
            POLICY.format(name="gossip", traits="in_step=True"),
            "policy 'gossip': needs_no_own_rows and in_step go with moves_rows_by_pushes_alone",
        ),
        ("gossip", POLICY.format(name="ssp", traits=""), "'ssp' is registered by"),
    ],
)
def test_a_package_that_is_wrong_is_named(
    own_process, corpus, monkeypatch, name, module, sentence
) -> None:
    packages = corpus / "packages"
    about = packages / "wrong-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: wrong\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[yeoron.policies]\n{name} = wrong_policy\n")
    (packages / "wrong_policy.py").write_text(module)
    monkeypatch.setenv("PYTHONPATH", str(packages))
    before = sorted(corpus.iterdir())
    done = own_process("train", "c.txt", "--sync", name)
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err
    assert sentence in " ".join(done.err.split())
    assert sorted(corpus.iterdir()) == before


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("train c.txt --context abc", "'--context': should be a valid integer"),
        ("invite out.json --role nope", "'--role': 'nope' is not one of 'node', 'server'."),
    ],
)
def test_a_wrong_value_is_refused_without_the_words_of_a_library(
    yeoron, corpus, given, sentence
) -> None:
    done = yeoron(*given.split())
    assert (done.code, done.out) == (2, "")
    assert " ".join(done.err.split()).endswith(f"Error: Invalid value for {sentence}")
