"""Remove what is older than the settings say, as `yeoron retain` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedding_airflow.operators.base import YeoronOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from embedding.settings import Settings


class Retain(YeoronOperator):
    """Takes out of every store what is too old; a retry goes on where a try failed.

    Result: a sentence for each store with how much was removed.
    """

    def work(self, settings: Settings, context: Context) -> list[str]:  # noqa: ARG002
        """Do it, and log each sentence."""
        from embedding.forgetting import retain

        done = retain(settings)
        for sentence in done:
            self.log.info("%s", sentence)
        return done
