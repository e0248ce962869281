"""The page within another application whose login lets the reader in."""

from __future__ import annotations

from fastapi import Depends, FastAPI

from embedding.web.app import create_app
from embedding.web.config import WebConfig


def let_in() -> None:
    """Stands for that login."""


def unguarded(config: WebConfig, *channels: str) -> FastAPI:
    """The page, open to everybody."""
    return create_app(config, dependencies=[Depends(let_in)], channels=channels)
