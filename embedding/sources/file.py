"""Adding sources to a sources.toml: what is there stays as it is written, in one atomic switch."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from embedding.kernel.config import WITH_SECRETS
from embedding.kernel.durable import replaced
from embedding.kernel.errors import ConfigError
from embedding.sources.config import SourceConfig, load_sources


def add_sources(path: Path, sources: Sequence[SourceConfig]) -> list[str]:
    """Append `[[source]]` tables; names of those that were not there already (by name or address).

    Everything else in the file is kept, comments too. Raises ConfigError when the result would be
    no valid file; then nothing has changed.
    """
    with _locked(path):
        known = load_sources(path)
        names, urls = {one.name for one in known}, {one.url for one in known if one.url}
        fresh = [one for one in sources if one.name not in names and one.url not in urls]
        if not fresh:
            return []
        text = path.read_text(encoding="utf-8").rstrip("\n") + "\n"
        text += "".join("\n" + source_table(one) for one in fresh)
        with replaced(path) as file:
            file.write(text.encode())
            file.flush()
            load_sources(Path(file.name))
        return [one.name for one in fresh]


def source_table(source: SourceConfig) -> str:
    """One `[[source]]` with what differs from the defaults."""
    values = source.model_dump(mode="json", exclude_defaults=True, context=WITH_SECRETS)
    # What has a default and is None is written as nothing: a language that is mixed.
    lines = [f"{key} = {_value('' if value is None else value)}" for key, value in values.items()]
    return "\n".join(["[[source]]", *lines]) + "\n"


def _value(value: object) -> str:
    """A TOML value; JSON's strings and numbers are TOML's too, apart from DEL."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_value(k)} = {_value(v)}" for k, v in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Nobody else adds to the file meanwhile: its folder is locked, for the file is replaced."""
    try:
        folder = os.open(path.parent, os.O_RDONLY)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; a sources.toml is expected.") from error
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
