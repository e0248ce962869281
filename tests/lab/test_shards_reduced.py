"""All-reduce and hybrid with rows on shards: every movement once, also when a shard is killed."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from named import QUICK
from nodes_in_step import DIM, Block, learn
from threads import fleet, sharded

from embedding.exchange.protocol import PullRequest
from embedding.exchange.topology import MeetingSpec, TopologyConfig
from embedding.kernel.records import Table
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.rows.tables import first_vectors
from embedding.worker.process.making import connect as greet
from yeoron_lab.allreduce.meeting import Meeting
from yeoron_lab.allreduce.reducing import ReducingTransport
from yeoron_lab.allreduce.rendezvous import rendezvous

NAMES = ("n0", "n1")
BLOCKS, KILLED = 12, 6


def script(rank: int) -> list[Block]:
    """Two words in every block, and one that no other block has."""
    return [Block(("the", "of", f"rare{rank}x{at}"), 1 + rank) for at in range(BLOCKS)]


@pytest.mark.laboratory
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["hybrid", "allreduce"])
def test_a_shard_killed_in_the_middle_costs_no_movement(tmp_path, kind):
    kept = ServerConfig(
        shards=2,
        state_dir=tmp_path,
        checkpoint_every_s=600.0,
        min_count=1,
        device="cpu",
        half_life_tokens=None,
    )
    topology = TopologyConfig(kind=kind, write_back_blocks=3, rechoose_blocks=4, peer_timeout_s=60)
    with sharded(kept, SyncConfig(policy="asp"), dim=DIM) as server, rendezvous() as folder:
        spec = MeetingSpec(folder=folder, names=NAMES)

        def node(rank: int) -> ReducingTransport:
            with greet(server.location, node=NAMES[rank], config=QUICK) as client:
                route = ReducingTransport(
                    client,
                    Meeting(spec, name=NAMES[rank], incarnation=str(rank), timeout_s=60),
                    topology,
                    dim=DIM,
                    half=False,
                    least=0.9,
                    tokens=lambda place: int(place or 0),
                )
                try:
                    for sequence, block in enumerate(script(rank)):
                        if rank == 0 and sequence == KILLED:
                            fleet(server).crash(1)
                            fleet(server).restart(1)
                        learn(route, sequence, block)
                    route.finish()
                finally:
                    route.close()
                return route

        with ThreadPoolExecutor(len(NAMES)) as pool:
            routes = list(pool.map(node, range(len(NAMES)), timeout=100))
        moved: Counter[str] = Counter()
        for rank in range(len(NAMES)):
            for block in script(rank):
                moved.update(dict.fromkeys(block.words, block.by))
        with greet(server.location, node="reader", config=QUICK) as client:
            ids = client.admit(list(moved), np.ones(len(moved), dtype=np.int64))
            rows = client.pull(
                PullRequest({Table.IN: ids, Table.OUT: ids}, clock=client.welcome.clock)
            )
        total = np.array(list(moved.values()), dtype=np.float32)[:, None]
        assert np.allclose(rows.rows[Table.IN], first_vectors(ids, DIM, 3) + total, atol=1e-4)
        assert np.allclose(
            rows.rows[Table.OUT], np.broadcast_to(total, rows.rows[Table.OUT].shape), atol=1e-4
        )
        for route in routes:
            dense = route.replicas[Table.IN].ids
            assert len(dense) == (2 if kind == "hybrid" else len(moved))
            assert route.metrics.reduced_rows > 0
        assert [shard["lost_pushes"] for shard in server.status()["shards"]] == [0, 0]
