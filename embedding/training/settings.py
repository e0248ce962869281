"""What a training takes of the settings of all commands, and what it refuses of them by name.

`yeoron.toml` and the environment say how the platform is; a training of a corpus is one server and
some nodes of its own, so most of it holds there too. What has no meaning in it is refused, so that
nobody waits for an effect that does not come.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embedding.kernel.errors import ConfigError
from embedding.settings import GivenSettings

TRAINING_SECTIONS = ("model", "text", "stream", "node", "exchange", "sync", "server")
"""Sections that a training reads; the others are about other commands."""

OWN_SERVER = "its server is its own, for as long as it trains"
CRAWLING = "it reads a file and crawls nothing"
UNUSED: dict[str, dict[str, str]] = {
    "server": {
        **dict.fromkeys(
            (
                "host",
                "port",
                "http_host",
                "http_port",
                "token_file",
                "operator_token_file",
                "tls_cert",
                "tls_key",
                "tls_client_ca",
                "tls_ca",
                "shards_port",
                "shards_dir",
                "group",
                "config_digest",
                "corpus_digest",
            ),
            OWN_SERVER,
        ),
        **dict.fromkeys(
            (
                "allowed_lateness_s",
                "source_idle_s",
                "min_authors",
                "min_sources",
            ),
            CRAWLING,
        ),
        "state_dir": "--state-dir says where its checkpoints are",
        "snapshots": "--out says where its snapshots are",
        "window": "--window says how time is cut",
        "cut": "a dated corpus is cut as its dates pass",
        "in_step": "a corpus is always read in step",
        "initial_rows": "it begins with as many rows as there are words",
    },
    "node": dict.fromkeys(
        ("batch_documents", "batch_seconds", "text_processes", "text_timeout", "flush_seconds"),
        CRAWLING,
    ),
    "exchange": dict.fromkeys(
        ("location", "token_file", "operator_token_file", "tls_ca", "tls_cert", "tls_key"),
        OWN_SERVER,
    ),
}
"""Settings of those sections that change nothing in a training, and why."""


def taken(given: GivenSettings, command: str = "yeoron train") -> dict[str, dict[str, Any]]:
    """By section what environment and file say and a training uses.

    Raises ConfigError that names the first setting which it cannot use.
    """
    found = {name: dict(given.values.get(name, {})) for name in TRAINING_SECTIONS}
    for section, values in found.items():
        unused: Mapping[str, str] = UNUSED.get(section, {})
        for name in values:
            if name in unused:
                raise ConfigError(
                    f"{given.origin(section, name)}: {command} does not use {section}.{name}, as "
                    f"{unused[name]}; leave it out for this command."
                )
    return found
