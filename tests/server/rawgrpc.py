"""Flight messages byte by byte, as no Arrow library would send them."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import grpc
import pyarrow as pa

from embedding.exchange.protocol import PROTOCOL_VERSION
from embedding.exchange.wire import COMMAND, Message, encode

METHOD = "/arrow.flight.protocol.FlightService/DoExchange"


def varint(n: int) -> bytes:
    """Protobuf's variable-length integer."""
    out = b""
    while n > 0x7F:
        out, n = out + bytes([n & 0x7F | 0x80]), n >> 7
    return out + bytes([n])


def field(number: int, data: bytes) -> bytes:
    """A length-delimited protobuf field."""
    return varint(number << 3 | 2) + varint(len(data)) + data


DESCRIPTOR = varint(1 << 3) + varint(2) + field(2, COMMAND)


def flight_data(header: bytes, metadata: bytes = b"", body: bytes = b"", *, first=False) -> bytes:
    """A FlightData message; the first of a stream names what is asked for."""
    named = field(1, DESCRIPTOR) if first else b""
    return named + field(2, header) + field(3, metadata) + field(1000, body)


def ipc(batch: pa.RecordBatch, compression: str | None = None) -> list[tuple[bytes, bytes]]:
    """Arrow IPC messages of a stream, (header, body) each: the schema, then the batch."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    data, at, found = sink.getvalue().to_pybytes(), 0, []
    while True:
        _, size = struct.unpack_from("<ii", data, at)
        if not size:
            return found
        message = pa.ipc.read_message(pa.py_buffer(data[at:]))
        body = b"" if message.body is None else message.body.to_pybytes()
        at += 8 + size
        found.append((data[at - size : at], body))
        at += len(body)


def parts(message: Message, compression: str | None = None) -> tuple[bytes, bytes, bytes, bytes]:
    """Schema header, batch header, metadata, body of one message of the exchange."""
    batch, metadata = encode(message)
    (schema, _), (header, body) = ipc(batch, compression)
    return schema, header, metadata, body


def greeting(node: str) -> Message:
    """The first message of a stream."""
    return Message(
        {"op": "hello", "version": PROTOCOL_VERSION, "node": node, "config_digest": "", "clock": 0}
    )


def exchange(location: str, messages: Iterable[bytes], timeout: float = 60.0) -> list[bytes]:
    """What the server answers, its last words too when it ends the stream with an error."""
    address = location.split("://")[1]
    limits = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    answers: list[bytes] = []
    with grpc.insecure_channel(address, options=limits) as channel:
        call = channel.stream_stream(METHOD, request_serializer=bytes, response_deserializer=bytes)
        try:
            answers.extend(call(iter(list(messages)), timeout=timeout))
        except grpc.RpcError as error:
            answers.append(f"{error.code().name}: {error.details()}".encode())
    return answers
