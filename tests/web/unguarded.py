"""The page within another application whose login lets the reader in."""

from __future__ import annotations

from fastapi import Depends, FastAPI, Request

from embedding.web.app import create_app
from embedding.web.config import WebConfig


def let_in(request: Request) -> None:
    """Stands for that login, of somebody who may write notes."""
    request.state.role = "analyst"


def unguarded(config: WebConfig, *channels: str) -> FastAPI:
    """The page, open to everybody."""
    return create_app(config, dependencies=[Depends(let_in)], channels=channels)
