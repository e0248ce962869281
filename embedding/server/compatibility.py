"""What goes with what: one table, from the traits that models, policies and compressors declare.

Each row is a `Need`. All refusals of a combination by name read it, and so do the command line,
Airflow's forms, the tables of docs/extending.md and the tests' parameters.
"""

from __future__ import annotations

from embedding.exchange.compression.traits import COLUMN_COMPRESSION, COMPRESSIONS
from embedding.kernel.registry import Need
from embedding.models.traits import COLUMN_MODEL, GPU_MODEL, RANKED_MODEL, ROUNDS_MODEL
from embedding.server.policies.traits import POLICIES

SHARDS = Need(
    "shards",
    POLICIES,
    "moves_rows_by_pushes_alone",
    "it works on the tables of one process",
)
SERVER_GROUPS = Need(
    "server groups",
    POLICIES,
    "moves_rows_by_pushes_alone",
    "its nodes change rows past the pushes that groups tell each other of",
)
COLUMN_POLICY = Need(
    "split columns", POLICIES, "needs_no_own_rows", "nodes have no rows of their own"
)
SUMS_POLICY = Need("all-reduce", POLICIES, "in_step", "its nodes are in step by their sums alone")
AGGREGATED_POLICY = Need("aggregators", POLICIES, "in_step", "what an aggregator pushes is one sum")

SUMS_COMPRESSION = Need("all-reduce", COMPRESSIONS, "whole", "sums travel whole")
AGGREGATED_COMPRESSION = Need(
    "aggregators", COMPRESSIONS, "whole", "an aggregator adds up whole deltas"
)
ROUNDS_COMPRESSION = Need(
    "policies with rounds of L-BFGS",
    COMPRESSIONS,
    "whole",
    "what nodes keep back is not in the rows that a round begins with",
)

NEEDS: tuple[Need, ...] = (
    SHARDS,
    SERVER_GROUPS,
    SUMS_POLICY,
    AGGREGATED_POLICY,
    SUMS_COMPRESSION,
    AGGREGATED_COMPRESSION,
    ROUNDS_COMPRESSION,
    COLUMN_POLICY,
    COLUMN_COMPRESSION,
    COLUMN_MODEL,
    ROUNDS_MODEL,
    RANKED_MODEL,
    GPU_MODEL,
)
