"""Talking to MLflow's tracking store: connecting, and what a run of Yeoron is known by.

MLflow is imported on first use only: it takes seconds.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from embedding.kernel.errors import ConfigError, PlatformError

if TYPE_CHECKING:
    from mlflow import MlflowClient

KIND = "yeoron.kind"
KEY = "yeoron.key"
PARENT = "mlflow.parentRunId"
_DEFAULTS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    # The address may hold a password.
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3",
}


def connect(tracking_uri: str) -> MlflowClient:
    """A client for one tracking address, telemetry off and timeouts on.

    Raises ConfigError when MLflow is not installed or the address is empty.
    """
    if not tracking_uri:
        raise ConfigError("evaluation.tracking_uri: an MLflow address is needed, got an empty one.")
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
    try:
        with warnings.catch_warnings():
            # MLflow warns about type hints of its own classes while it is imported.
            warnings.simplefilter("ignore")
            import mlflow.pyfunc  # noqa: F401
            from mlflow import MlflowClient
    except ImportError as error:
        raise ConfigError(
            "tracking needs MLflow, which is not installed: install the extra `mlflow`."
        ) from error
    with reported(tracking_uri):
        return MlflowClient(tracking_uri=tracking_uri, registry_uri=tracking_uri)


@contextmanager
def reported(tracking_uri: str) -> Iterator[None]:
    """Turn MLflow's errors into one PlatformError that names the address."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        reason = "it does not answer: is the platform running (`yeoron status`)?"
        if not _unanswered(error):
            reason = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
        shown = re.sub(r"//[^@/]*@", "//", tracking_uri)
        raise PlatformError(f"MLflow at {shown}: {reason}") from error


def _unanswered(error: BaseException | None) -> bool:
    """Whether an error comes from a connection that nobody took, or on which nothing came."""
    from requests import exceptions

    while error is not None:
        if isinstance(error, exceptions.ConnectionError | exceptions.Timeout):
            return True
        error = error.__cause__ or error.__context__
    return False


def metric_name(name: str) -> str:
    """A name that MLflow accepts: letters of any script, digits, `_ - . : /` and space."""
    return re.sub(r"[^/\w.\- :]", "_", name).strip("/")[:250] or "_"
