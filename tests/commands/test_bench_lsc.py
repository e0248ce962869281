"""`yeoron bench lsc`: a folder that is not laid out as it should be."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.mark.parametrize("there", [False, True])
def test_a_folder_that_lacks_a_file_is_one_sentence(yeoron, tmp_path: Path, there: bool) -> None:
    folder, results = tmp_path / "set", tmp_path / "results"
    if there:
        folder.mkdir()
    done = yeoron("bench", "lsc", folder, "--results", results)
    assert done.code == 2
    assert done.out == ""
    missing = folder / "targets.txt" if there else folder
    assert done.err.startswith(f"yeoron: {missing}: there is no such ")
    assert done.err.count("\n") == 1
    assert not results.exists()
