"""How Yeoron's errors become task failures: retried only where a retry can help."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from embedding.kernel.errors import ConfigError, InputError, RefusedError, YeoronError


@contextmanager
def plain_failures() -> Iterator[None]:
    """Turn a YeoronError into Airflow's exception with the same sentence.

    A wrong setting or input and a refusal fail the task at once (AirflowFailException): the same
    call cannot do better. Everything else, an unreachable server above all, is left to the
    task's retries (AirflowException).
    """
    try:
        yield
    except (ConfigError, InputError, RefusedError) as error:
        raise AirflowFailException(str(error)) from error
    except YeoronError as error:
        raise AirflowException(str(error)) from error
