"""One shard as a running process: its port, its checkpoints, its end.

    python -m yeoron_lab.shards.service SPEC

SPEC is a `ShardSpec` as JSON. The process says where it listens in a line of JSON on its standard
output, and ends on SIGTERM, or as soon as its standard input ends: with the primary that started
it, however that died.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from embedding.exchange.codec import from_message
from embedding.exchange.protocol import (
    PROTOCOL_VERSION,
    PulledRows,
    PullRequest,
    Push,
    version_refused,
)
from embedding.exchange.rows import KeptByNode, answering, kept_by_node
from embedding.exchange.wire import Message, whole
from embedding.kernel.config import part_of
from embedding.kernel.errors import RefusedError, UnavailableError, YeoronError
from embedding.kernel.logs import begin_logging
from embedding.kernel.processes import stop_on_signals
from embedding.server.figures.meters import Meters, Parts
from embedding.server.flight.credentials import read_credentials
from embedding.server.flight.listening import end, listen
from embedding.server.flight.shell import (
    Call,
    FlightService,
    called,
    check_rows,
    received,
    rows_answered,
)
from embedding.server.recovery.checkpoint import CheckpointFolder
from embedding.server.recovery.checkpointer import last_of
from embedding.server.rowstore import LogPosition
from embedding.server.validation import check_name
from yeoron_lab.processes import announce, end_with_parent
from yeoron_lab.settings import ShardSettings
from yeoron_lab.shards.client.columns import columns
from yeoron_lab.shards.log import at_of, from_json, string, table_of
from yeoron_lab.shards.recovery import ShardRecovery
from yeoron_lab.shards.spec import ShardSpec
from yeoron_lab.shards.state import NotReachedError, ShardState

logger = logging.getLogger(__name__)

MAX_LOST = 10_000_000


def answer_pull(
    state: ShardState, node: str, message: Message, at: LogPosition, keeps: Sequence[KeptByNode]
) -> Message:
    """The rows that a node asks for at `at` or later; NotReachedError.

    keeps  what the node keeps of rows
    """
    request, most_bytes = from_message(PullRequest, message), state.spec.server.max_message_bytes
    ids, half = request.ids, request.half
    check_rows(sum(map(len, ids.values())), state.spec.dim, most_bytes, half=half)
    wanted = answering(keeps, message, ids)
    with state.changed:
        state.reach(at)
        gathered = {
            table: state.tables.gather(table, state.held.slots(table, asked, "pull"))
            for table, asked in ids.items()
        }
        state.meters.rows_out += sum(map(len, ids.values()))
        sequence = state.inbox.ledger.of(node).applied
        if wanted is not None:
            half = half and wanted.whole
            state.meters.rows_spared += wanted.read(
                state.tables, state.held.slots, node, (state.epoch, sequence)
            )
    as_sent = state.tables.device.as_sent
    rows = {table: as_sent(each, half) for table, each in gathered.items()}
    return rows_answered(PulledRows(0, rows, sequence), wanted)


def acknowledged(state: ShardState, node: str) -> Message:
    """How far a node's pushes are here."""
    entry = state.inbox.ledger.of(node)
    header = {"status": "ok", "accepted": entry.accepted, "durable": entry.durable}
    return Message({**header, "epoch": state.epoch})


def check_lost(node: str, lost: int) -> None:
    """RefusedError when a node says that more of its pushes are lost than it can have made."""
    if lost > MAX_LOST:
        raise RefusedError(
            f"node {node}: its `first` push is {lost} behind the last one that is known here; at "
            f"most {MAX_LOST} are accepted.",
            kind="sequence",
        )


class ShardServer:
    """One shard; `start` opens its port, `stop` writes a last checkpoint and closes it."""

    def __init__(self, spec: ShardSpec) -> None:
        config = spec.server
        self.spec = spec
        self._credentials = read_credentials(config)
        folder = None
        if config.state_dir is not None:
            folder = CheckpointFolder(config.state_dir, keep=config.keep_checkpoints)
        self.recovery: ShardRecovery | None = None
        try:
            epoch = int(time.time() * 1000) if folder is None else folder.next_epoch()
            self.state = ShardState(spec, epoch=epoch)
            if folder is not None:
                every = config.checkpoint_every_s
                self.recovery = ShardRecovery(self.state, folder, every_s=every)
        except BaseException:
            if folder is not None:
                folder.close()
            raise
        self.location = ""
        self._flight: FlightService | None = None

    def start(self) -> None:
        """Open the port; PlatformError when it is taken."""
        self._flight = listen(
            self.spec.server,
            self.state,
            {"ping": self._ping, "checkpoint": self._checkpoint},
            lambda: ShardSession(self.state),
            self._credentials,
            f"of shard {self.spec.index}",
        )
        self.location = self._flight.address
        if self.recovery is not None:
            self.recovery.opened()

    def stop(self) -> None:
        """Hang up, then write what is here."""
        self.state.close()
        if self._flight is not None:
            end(self._flight)
        if self.recovery is not None:
            self.recovery.stop()

    def _ping(self, body: dict[str, Any]) -> bool:
        return not self.state.closing

    def _checkpoint(self, body: dict[str, Any]) -> list[int]:
        """Write a checkpoint; with {"wait": false} only begin to. The place in the log that the
        newest one holds."""
        wait = body.get("wait", True) is True
        failed = None if self.recovery is None else self.recovery.request(wait=wait)
        if failed is not None:
            raise UnavailableError(f"shard {self.spec.index}: {failed}.")
        with self.state.lock:
            return [self.state.cursor.number, self.state.cursor.durable]


class ShardSession:
    """What one stream, a node's or the primary's, has said so far."""

    def __init__(self, state: ShardState) -> None:
        self.state = state
        self.node = ""
        self.number = 0
        self._leads = 0
        self._kept = kept_by_node(state.tables.seed)
        self._calls: dict[str, Call] = {
            "pull": self._pull,
            "push": self._push,
            "confirm": self._acknowledged,
        }
        if part_of(state.spec.server, ShardSettings).split == "columns":
            self._calls |= columns().calls(state, lambda: self.node)
        self._leading: dict[str, Call] = {
            "log": self._log,
            "rows": self._rows,
            "sums": self._sums,
            "copied": self._copied,
            "forget": self._forget,
        }

    @property
    def meters(self) -> Meters:
        """Bytes of the primary are not those of nodes."""
        return self.state.led if self._leads else self.state.meters

    def handle(self, chunk: Any, size: int, parts: Parts) -> Message:
        message = received(chunk, size, parts, self.state.spec.server.max_message_bytes)
        operation = message.header.get("op")
        if operation == "hello":
            return self._hello(message)
        if operation == "lead":
            return self._lead(message)
        calls = self._leading if self._leads else self._calls
        if not (self.node or self._leads):
            raise RefusedError("the first message of a stream must be `hello` or `lead`.")
        call = called(calls, operation)
        if self.node:
            self.state.check_session(self.node, self.number)
        try:
            return call(message)
        except NotReachedError:
            return Message({"status": "waiting"})

    def ended(self) -> None:
        """The stream is over."""

    # -- nodes ------------------------------------------------------------------------------

    def _hello(self, message: Message) -> Message:
        if why := version_refused(whole(message.header, "version")):
            raise RefusedError(why, kind="greeting")
        node = string(message.header, "node")
        first = whole(message.header, "first", least=1)
        check_name("node", node)
        check_lost(node, first - self.state.inbox.ledger.of(node).accepted)
        last = whole(message.header, "last") if "last" in message.header else None
        entry = self.state.hello(node, first, last)
        self.node, self.number = node, entry.session
        return self._acknowledged()

    def _pull(self, message: Message) -> Message:
        return answer_pull(self.state, self.node, message, at_of(message), self._kept)

    def _push(self, message: Message) -> Message:
        push = from_message(Push, message)
        if message.header.get("batch") is not None:
            push = self._with_block(push, message)
        if push.node != self.node:
            raise RefusedError(f"push of node {push.node}: this stream is node {self.node}'s.")
        self.state.push(push)
        for rows in self._kept:
            rows.learnt(push)
        return self._acknowledged()

    def _with_block(self, push: Push, message: Message) -> Push:
        if part_of(self.state.spec.server, ShardSettings).split != "columns":
            raise RefusedError(
                f"push {push.sequence} of node {push.node}: a block to learn; rows lie here, not "
                "columns."
            )
        return replace(push, minibatches=columns().decode(message))

    def _acknowledged(self, _: Message | None = None) -> Message:
        return acknowledged(self.state, self.node)

    # -- the primary ------------------------------------------------------------------------

    def _lead(self, message: Message) -> Message:
        header = message.header
        # A primary and its shards are started by one program.
        if (version := whole(header, "version")) != PROTOCOL_VERSION:
            raise RefusedError(f"protocol {version}; this shard speaks {PROTOCOL_VERSION}.")
        self._leads = whole(header, "number")
        standing = self.state.lead(self._leads, string(header, "identity"))
        return Message({"status": "ok", **standing})

    def _log(self, message: Message) -> Message:
        entries = message.header.get("entries")
        try:
            read = [from_json(each) for each in entries]  # type: ignore[union-attr]
        except (TypeError, ValueError, IndexError, OverflowError) as error:
            raise RefusedError("log: entries that cannot be read.") from error
        return Message(
            {"status": "ok", **self.state.take(self._leads, whole(message.header, "first"), read)}
        )

    def _rows(self, message: Message) -> Message:
        rows = self.state.rows(table_of(message), message.array("ids", "i8", 1), at_of(message))
        return Message({"status": "ok"}, {"rows": rows})

    def _sums(self, message: Message) -> Message:
        """Rows of n-grams added up: those of sum i are ids[offsets[i] : offsets[i + 1]]."""
        ids, offsets = message.array("ids", "i8", 1), message.array("offsets", "i8", 1)
        ends = offsets[:1].tolist() + offsets[-1:].tolist()
        if ends != [0, len(ids)] or np.any(np.diff(offsets) < 0):
            raise RefusedError("sums: `offsets` must rise from 0 to the number of ids.")
        rows = self.state.gram_sums(ids, offsets, at_of(message))
        return Message({"status": "ok"}, {"rows": rows})

    def _copied(self, message: Message) -> Message:
        """Rows of a copy; without a table only whether it was begun."""
        self.state.reach(at_of(message))
        if "ids" not in message.arrays:
            return Message({"status": "ok"})
        number, ids = whole(message.header, "number"), message.array("ids", "i8", 1)
        rows = self.state.copied(number, table_of(message), ids)
        return Message({"status": "ok"}, {"rows": rows})

    def _forget(self, message: Message) -> Message:
        self.state.forget_copy(whole(message.header, "number"))
        return Message({"status": "ok"})


def main() -> None:
    """The process: serve until SIGTERM or the end of standard input."""
    begin_logging("shard")
    ended = stop_on_signals()
    end_with_parent(ended.set)
    try:
        server = ShardServer(ShardSpec.model_validate_json(sys.argv[1]))
        server.start()
    except YeoronError as error:
        logger.error("%s", error)
        os._exit(error.exit_code)
    announce(location=server.location)
    ended.wait()
    server.stop()
    failed = None if server.recovery is None else server.recovery.failed
    if failed is not None:
        logger.error("state_dir %s: %s", server.spec.server.state_dir, last_of(failed))
    logging.shutdown()
    # Nothing is left to do; taking gRPC and torch down in order would only hold the primary up.
    os._exit(0 if failed is None else 1)


if __name__ == "__main__":
    main()
