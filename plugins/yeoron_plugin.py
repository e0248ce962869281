"""The one Airflow plugin: the page in the navigation, links on tasks, windows on runs.

Airflow executes this file in each of its processes, so it imports nothing heavy: the page itself
is built in the api-server, when somebody first opens it.
"""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from embedding_airflow import naming
from embedding_airflow.links import LINKS
from embedding_airflow.mount import URL_PREFIX, GuardedPage

# A rising line, inline: the navigation is drawn before anybody may fetch the page's own files.
ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 20 20' "
    "fill='none' stroke='%233b82c4' stroke-width='2' stroke-linecap='round' "
    "stroke-linejoin='round'%3E%3Cpath d='M2 15l5-5 3 3 7-8'/%3E%3Cpath d='M13 5h4v4'/%3E%3C/svg%3E"
)


class YeoronPlugin(AirflowPlugin):
    """Registers the page, its place in the navigation and the operators' links."""

    name = "yeoron"
    fastapi_apps: list[Any] = [  # noqa: RUF012 - the attribute's form is Airflow's
        {"app": GuardedPage(), "url_prefix": URL_PREFIX, "name": "Yeoron trends"}
    ]
    external_views: list[Any] = [  # noqa: RUF012
        {
            "name": "Trends",
            "href": f"{URL_PREFIX}/",
            "destination": "nav",
            "url_route": "yeoron",
            "icon": ICON,
            "nav_top_level": True,
        }
    ]
    operator_extra_links: list[Any] = list(LINKS)  # noqa: RUF012
    listeners: list[Any] = [naming]  # noqa: RUF012
