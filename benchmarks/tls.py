"""What a server with TLS costs clients of its machine: rows a second of pull and push, in turn.

    python -m benchmarks tls             by the server's Unix socket, as nodes of its machine go
    python -m benchmarks tls --by-port   encrypted, as nodes of other machines go

Two servers, each a process of its own: one plain, one with mutual TLS as the platform has it. In
each round a batch is pulled from and pushed to one of them and then the other, which of them first
by turns, so that both see the same machine. Times are wall times; a ratio is the median over rounds
of the quotient within a round.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.kept import RESULTS
from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.kernel.certificates import ensure_certificate, ensure_issued
from yeoron_bench.results import facts, hardware, keep_and_print
from yeoron_bench.wire import PLAIN, WIRE_SIDES, Batches, serving, timed

WARM = 5
SIDES = ("float32", "float16")
CALLS = ("pull", "push")


def measure(side: str, folder: Path, rows: int, dim: int, rounds: int) -> dict[str, Any]:
    """Seconds of each call, plain and by TLS, round by round."""
    precision, compression = WIRE_SIDES[side]
    own = ensure_certificate(folder, "authority")
    cert, key = ensure_issued(folder, "server", own, ("127.0.0.1",))
    known = {"tls_cert": cert, "tls_key": key, "tls_ca": own[0], "tls_client_ca": own[0]}
    line = ExchangeConfig(rows=precision, compression=compression)
    shown = {"tls_ca": own[0], "tls_cert": own[0], "tls_key": own[1]}
    times: dict[str, list[float]] = {
        f"{call}_{how}": [] for call in CALLS for how in ("plain", "tls")
    }
    with (
        serving(PLAIN, dim) as (_, at),
        serving(PLAIN.model_copy(update=known), dim) as (_, secret),
        ParameterClient(at, node="bench", config=line) as client,
        ParameterClient(secret, node="bench", config=line.model_copy(update=shown)) as other,
    ):
        sides = [("plain", Batches(client, rows, dim)), ("tls", Batches(other, rows, dim))]
        for round_ in range(WARM + rounds):
            runs = {}
            for how, batches in sides[:: 1 if round_ % 2 else -1]:
                runs[f"pull_{how}"] = timed(lambda: batches.pull(round_))  # noqa: B023 - at once
                runs[f"push_{how}"] = timed(lambda: batches.push(round_))  # noqa: B023
            if round_ >= WARM:
                for name, seconds in runs.items():
                    times[name].append(seconds)
    return {"side": side, **figures(times, rows)}


def figures(times: dict[str, list[float]], rows: int) -> dict[str, float]:
    """Medians, and what TLS leaves of the rows a second."""
    for how in ("plain", "tls"):
        pairs = zip(times[f"pull_{how}"], times[f"push_{how}"], strict=True)
        times[f"both_{how}"] = [pull + push for pull, push in pairs]
    figures = {f"{name}_rows_per_second": rows / statistics.median(t) for name, t in times.items()}
    for call in (*CALLS, "both"):
        pairs = zip(times[f"{call}_plain"], times[f"{call}_tls"], strict=True)
        quotients = sorted(plain / tls for plain, tls in pairs)
        figures[f"{call}_kept"] = statistics.median(quotients)
        figures[f"{call}_kept_low"] = quotients[len(quotients) // 4]
        figures[f"{call}_kept_high"] = quotients[3 * len(quotients) // 4]
    return figures


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=8_192)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--by-port", action="store_true", help="encrypted: not by the Unix socket")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    if given.by_port:  # a path too long for a socket
        os.environ["XDG_RUNTIME_DIR"] = "/" + "r" * 120
    load = hardware()
    with tempfile.TemporaryDirectory() as folder:
        runs = [measure(side, Path(folder), given.rows, given.dim, given.rounds) for side in SIDES]
    packages = ("yeoron", "numpy", "pyarrow", "torch", "cryptography")
    setting = {"rows": given.rows, "dim": given.dim, "rounds": given.rounds}
    setting["way"] = "by the port, encrypted" if given.by_port else "by the Unix socket"
    report = {**facts("tls", packages, load), "setting": setting, "runs": runs}
    keep_and_print(report, results=given.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
