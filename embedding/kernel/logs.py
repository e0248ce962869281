"""Log lines: for people as text, for programs as JSON of one schema.

A JSON line has these keys, always: `time` (ISO, UTC), `level`, `process`, `node`, `window`,
`message`, `fields`. What a call adds by `extra` stands in `fields`, `node` and `window` apart.
Neither form holds texts of documents. In JSON an error's own words are left out unless it is one of
ours, as a library's may quote what it read; passwords, tokens and cookies are blanked.

Run as a program it reads other programs' lines on standard input and writes them in that schema:
so Airflow, MLflow and Dask log alike (`platform/launch.py`). It imports the standard library only.
"""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import sys
import traceback
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from embedding.kernel.errors import YeoronError

FORMAT_VARIABLE = "YEORON_LOG__FORMAT"
"""The setting `log.format`, as every process that is started inherits it."""
KEYS = ("time", "level", "process", "node", "window", "message", "fields")
TEXT_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

_LONGEST = 2_000
_USUAL = frozenset(
    (*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "node", "window")
)
_PASSWORD = re.compile(r"(://)[^/\s@]+@")
_SECRET = re.compile(
    r"((?:token|password|passwd|secret|cookie|authorization|api[_-]?key)s?[\"']?\s*[:=]\s*)"
    r"(?:(?:Bearer|Basic)\s+)?(\"[^\"]*\"|'[^']*'|[^\s,;&]+)",
    re.IGNORECASE,
)
_LEVEL = re.compile(r"\b(DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)\b", re.IGNORECASE)
_LEVELS = {"warn": "warning", "fatal": "critical"}
_FRAME = re.compile(r'\s++File "([^"]*)", line (\d+)(?:, in (.*))?')
_TRACEBACK = "Traceback (most recent call last):"


def blanked(text: str) -> str:
    """`text` without what looks like a secret, and not longer than a line should be."""
    text = _SECRET.sub(r"\1***", _PASSWORD.sub(r"\1***@", text))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON."""

    def __init__(self, process: str, node: str = "") -> None:
        super().__init__()
        self._process = process
        self._node = node

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        fields: dict[str, Any] = {"logger": record.name, "pid": record.process}
        fields |= {
            name: _plain(value) for name, value in vars(record).items() if name not in _USUAL
        }
        if record.exc_info and record.exc_info[1] is not None:
            fields |= _error(record.exc_info[1])
        return _line(
            datetime.fromtimestamp(record.created, UTC),
            record.levelname.lower(),
            self._process,
            record.getMessage(),
            fields,
            node=str(getattr(record, "node", self._node)),
            window=str(getattr(record, "window", "")),
        )


def _plain(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    return blanked(str(value))


def _error(error: BaseException) -> dict[str, object]:
    fields: dict[str, object] = {
        "error": type(error).__name__,
        "stack": [
            f"{frame.filename}:{frame.lineno} {frame.name}"
            for frame in traceback.extract_tb(error.__traceback__)
        ],
    }
    if isinstance(error, YeoronError):
        fields["sentence"] = blanked(str(error))
    return fields


def _line(
    when: datetime,
    level: str,
    process: str,
    message: str,
    fields: dict[str, Any],
    *,
    node: str = "",
    window: str = "",
) -> str:
    values = (
        when.isoformat(timespec="milliseconds"),
        _LEVELS.get(level, level),
        process,
        node,
        window,
        blanked(message),
        fields,
    )
    return json.dumps(dict(zip(KEYS, values, strict=True)), ensure_ascii=False)


def begin_logging(process: str, *, node: str = "", level: int = logging.INFO) -> None:
    """Log this process to standard error, in the format that the environment says.

    process  what it is: server, shard, crawler, gradient, …
    """
    handler = logging.StreamHandler(sys.stderr)
    wanted = os.environ.get(FORMAT_VARIABLE) == "json"
    handler.setFormatter(JsonFormatter(process, node) if wanted else logging.Formatter(TEXT_FORMAT))
    logging.basicConfig(level=level, handlers=[handler])


def log_place() -> str:
    """Where what this process logs is to be read."""
    home, service = os.environ.get("YEORON_PLATFORM"), os.environ.get("SUPERVISOR_PROCESS_NAME")
    return f"{home}/logs/{service}.log" if home and service else "standard error"


def as_json(lines: Iterable[str], process: str) -> Iterator[str]:
    """Lines of any program in the schema; those that have it pass, and a traceback is one line."""
    frames: list[str] | None = None
    for raw in lines:
        line = raw.rstrip("\n")
        if frames is not None:
            if line.startswith((" ", "\t")) or not line:
                frame = _FRAME.match(line)
                frames += [f"{frame[1]}:{frame[2]} {frame[3] or ''}".strip()] if frame else []
                continue
            error = line.partition(":")[0].rpartition(".")[2]
            fields = {"error": error, "stack": frames}
            frames = None
            yield _line(datetime.now(UTC), "error", process, "an error ended a task", fields)
        elif line.strip() == _TRACEBACK:
            frames = []
        elif line.strip():
            yield _foreign(line, process)


def _foreign(line: str, process: str) -> str:
    record: Any = None
    if line.startswith("{"):
        try:
            record = json.loads(line)
        except ValueError:
            record = None
    if isinstance(record, dict) and tuple(record) == KEYS:
        return line
    if isinstance(record, dict):
        message = record.get("event") or record.get("message") or ""
        level = str(record.get("level") or "info").lower()
        fields = {"logger": str(record.get("logger") or "")}
        return _line(datetime.now(UTC), level, process, str(message), fields)
    level_named = _LEVEL.search(line[:80])
    level = "info" if level_named is None else level_named[1].lower()
    return _line(datetime.now(UTC), level, process, line, {})


def main() -> None:
    """Standard input to standard output, until the last program that writes to it has ended."""
    # The supervisor ends a service's whole group; this one ends after it, with its last words.
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)
    incoming = os.fdopen(sys.stdin.fileno(), encoding="utf-8", errors="replace", closefd=False)
    try:
        for line in as_json(incoming, sys.argv[1]):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
    except BrokenPipeError:
        os._exit(0)


if __name__ == "__main__":
    main()
