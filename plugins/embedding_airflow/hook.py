"""Read what a running platform says, from a DAG of one's own (connection type *Yeoron*)."""

from __future__ import annotations

from typing import Any

import httpx
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowException, AirflowFailException

_TIMEOUT_S = 60.0


class YeoronHook(BaseHook):
    """The API of the trends page that a connection names: its address and a token.

    The connection's host is the page's address (`http://127.0.0.1:8080/yeoron`), its password a
    token that `yeoron token make NAME` printed. Everything is read only.
    """

    conn_name_attr = "yeoron_conn_id"
    default_conn_name = "yeoron_default"
    conn_type = "yeoron"
    hook_name = "Yeoron"

    def __init__(self, yeoron_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.yeoron_conn_id = yeoron_conn_id

    def get_conn(self) -> httpx.Client:
        """A client of `ADDRESS/api/v1/` that sends the token; whoever asks closes it.

        Raises AirflowFailException for a connection without an address of http or https.
        """
        connection = self.get_connection(self.yeoron_conn_id)
        host = (connection.host or "").rstrip("/")
        if not host.startswith(("http://", "https://")):
            raise AirflowFailException(
                f"connection {self.yeoron_conn_id}: host {host!r}: the address of the trends page "
                "is accepted, as in http://127.0.0.1:8080/yeoron."
            )
        token = {"Authorization": f"Bearer {connection.password}"} if connection.password else {}
        return httpx.Client(base_url=f"{host}/api/v1/", headers=token, timeout=_TIMEOUT_S)

    def read(self, answer: str, **query: Any) -> Any:
        """One answer of the API as parsed JSON, e.g. `read("stories", id="2020-03", limit=5)`.

        Raises AirflowFailException for a token or a question that is refused, AirflowException
        where nobody answers or the answer is not there yet: a retry can help then.
        """
        with self.get_conn() as client:
            try:
                response = client.get(answer.lstrip("/"), params=query)
            except httpx.HTTPError as error:
                raise AirflowException(
                    f"{client.base_url}: no answer ({type(error).__name__}): is the platform "
                    "running (`yeoron status`)?"
                ) from error
        if response.is_success:
            return response.json()
        sentence = f"{response.url}: HTTP {response.status_code}: {_reason(response)}"
        if response.is_client_error:
            raise AirflowFailException(sentence)
        raise AirflowException(sentence)

    def test_connection(self) -> tuple[bool, str]:
        """For the form's button *Test*: whether the page answers to the token."""
        try:
            windows = self.read("windows")["windows"]
        except (AirflowException, ValueError, KeyError) as error:
            return False, str(error)
        return True, f"The page answers; it has {len(windows)} windows."


def _reason(response: httpx.Response) -> str:
    """The sentence of a refusal; what else answered is quoted by its first characters."""
    try:
        return str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        return response.text[:200]
