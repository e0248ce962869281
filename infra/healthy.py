"""The health check of the containers: ends with 0 where the parameter server is well.

`healthy.py PORT` asks another port than 8816.
"""

from __future__ import annotations

import http.client
import sys


def healthy(port: int) -> bool:
    """Whether /health of this machine answers 200."""
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3)
        connection.request("GET", "/health")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False


if __name__ == "__main__":
    sys.exit(not healthy(int(sys.argv[1]) if len(sys.argv) > 1 else 8816))
