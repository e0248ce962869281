"""Calls to an object store, which may be away, deny, throttle, lose an answer or keep half a file.

A call that fails is made again; an upload is looked at afterwards, and sent again where it is not
whole: writing the same object twice does no harm.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from embedding.kernel.errors import YeoronError

_TRIES = 4
_PAUSE_S = 0.2
"""Before the second try; twice as long each time. A client of S3 tries more often by itself."""
_SENTENCE = 300
_Answer = TypeVar("_Answer")


def asked(call: Callable[[], _Answer], failed: Callable[[str], YeoronError]) -> _Answer:
    """Make a call of an object store, several times where it fails for a reason that may pass.

    failed  the error to raise, of what the store said
    FileNotFoundError, and errors of ours, go through.
    """
    for at in range(_TRIES):
        try:
            return call()
        except (FileNotFoundError, YeoronError):
            raise
        # What clients of object stores raise is of many kinds, and not all are an OSError.
        except Exception as error:
            if at == _TRIES - 1 or isinstance(error, PermissionError):
                reason = " ".join(str(error).split())[:_SENTENCE] or type(error).__name__
                raise failed(reason.rstrip(".")) from error
        time.sleep(_PAUSE_S * 2**at)
    raise AssertionError("the last try returns or raises")


def put_whole(fs: Any, source: Path, target: str) -> None:
    """Upload a file and look at what is there; OSError when it is not all of it."""
    fs.put_file(str(source), target)
    fs.invalidate_cache()
    try:
        found = int(fs.info(target)["size"])
    except FileNotFoundError:
        found = 0
    sent = source.stat().st_size
    if found != sent:
        raise OSError(f"{target} has {found} bytes there, {sent} were sent")
