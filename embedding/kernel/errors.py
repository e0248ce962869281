"""The one error hierarchy.

YeoronError
├── ConfigError      a setting, option or configuration file is wrong
├── InputError       a file, URL or corpus line from outside is wrong
│   └── SnapshotError    a snapshot is missing, incomplete or fails its checksum
├── FetchError       one URL could not be fetched (named reason; the crawl goes on)
├── ExchangeError    between node and server
│   ├── RefusedError     the server refused a message: sending it again cannot help
│   │   ├── AheadError       a read ahead that has to wait for the reader's own push
│   │   ├── ReplacedError    another process has greeted the server under this node's name
│   │   └── BehindError      the server's state is older than what this node still holds
│   └── UnavailableError the server cannot be reached now: send again later
└── PlatformError    a service could not be started, found or stopped

Every message is one sentence that says what is wrong, where, and what is accepted.
The command line prints it alone and exits with `exit_code`.
"""

from __future__ import annotations


class YeoronError(Exception):
    """Base of every error that Yeoron raises on purpose."""

    exit_code = 1


class ConfigError(YeoronError):
    """A setting, an option or a configuration file is wrong."""

    exit_code = 2


class InputError(YeoronError):
    """A file, URL, corpus line or argument from outside is wrong."""

    exit_code = 2


class KeyedError(InputError):
    """An input that the page refuses; `key` is the text of the page that says why."""

    def __init__(self, key: str, sentence: str) -> None:
        super().__init__(sentence)
        self.key = key


class SnapshotError(InputError):
    """A snapshot is missing, incomplete, or fails its checksum."""


class FetchError(YeoronError):
    """One URL could not be fetched.

    `reason` is one of a small set of names (`timeout`, `http_5xx`, `robots`, …) by which
    failures are counted; `retry_after` is in seconds, None when a retry cannot help. `status` is
    that of the answer, None where there was none or it is not the reason.
    """

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        retry_after: float | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry_after = retry_after
        self.status = status


class ExchangeError(YeoronError):
    """Something went wrong between a node and the parameter server."""


class RefusedError(ExchangeError):
    """The server refused a message; sending the same message again cannot help.

    `kind` is one of a small set of names (`message`, `size`, `shape`, `values`, `id`, `clock`,
    `sequence`, `greeting`, `limit`, `control`, `token`, `request`) by which refusals are counted.
    """

    exit_code = 2

    def __init__(self, message: str, *, kind: str = "request") -> None:
        super().__init__(message)
        self.kind = kind


class AheadError(RefusedError):
    """A node wanted to read ahead of its own push, which the policy does not allow."""


class RoundError(RefusedError):
    """A round of all nodes is on: a node takes part in it before it reads again."""


class ReplacedError(RefusedError):
    """Another process has greeted the server under this node's name since; this one ends."""


class BehindError(RefusedError):
    """The server went back to a checkpoint older than the pushes that this process holds.

    A process that starts again goes on from the server's state.
    """


class FencedError(BehindError):
    """What this process held was given to others, who believed it dead."""


class UnavailableError(ExchangeError):
    """The server cannot be reached at the moment; the same message may be sent again."""


class BrokenRingError(ExchangeError):
    """A peer among nodes that all-reduce is gone or silent; those that are left may meet again."""


class PlatformError(YeoronError):
    """A service of the platform could not be started, found or stopped."""
