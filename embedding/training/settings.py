"""What a training takes of the settings of all commands.

`yeoron.toml` and the environment say how the platform is; a training of a corpus is one server and
some nodes of its own, so most of it holds there too. What has no meaning in it is passed over.
"""

from __future__ import annotations

from typing import Any

from embedding.settings import GivenSettings

TRAINING_SECTIONS = ("model", "text", "stream", "node", "exchange", "sync", "server")
"""Sections that a training reads; the others are about other commands."""

PASSED_OVER = {
    "server": frozenset(
        (
            # Its server is its own, for as long as it trains.
            *("host", "port", "http_port", "token_file", "operator_token_file"),
            *("tls_cert", "tls_key", "tls_client_ca", "tls_ca", "shards_port", "group"),
            # It reads a file and crawls nothing.
            *("source_idle_s", "min_authors", "min_sources"),
            # Options say it (--state-dir, --out, --window), or how a corpus is read.
            *("state_dir", "snapshots", "window", "cut"),
        )
    ),
    "node": frozenset(("text_processes", "flush_seconds")),
    "exchange": frozenset(
        ("location", "token_file", "operator_token_file", "tls_ca", "tls_cert", "tls_key")
    ),
}
"""Settings of those sections that mean nothing to a training."""


def taken(given: GivenSettings) -> dict[str, dict[str, Any]]:
    """By section what environment and file say and a training uses."""
    return {
        section: {
            name: value
            for name, value in given.values.get(section, {}).items()
            if name not in PASSED_OVER.get(section, ())
        }
        for section in TRAINING_SECTIONS
    }
