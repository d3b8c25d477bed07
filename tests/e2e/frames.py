# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Frames, replies and control maps (protocol/format.h) in Python, for tests that change them in
transit."""
import struct

PREFACE = 16
FRAME = struct.Struct('<IBBHIIQQQII')
REPLY = struct.Struct('<IHHIIQII')
CALLS, REPLIES, ACK, CONTROL, PART, GIVE, GIVEN = range(1, 8)
MORE, TEXT, TEXT_STDERR = 1, 2, 4
FIELDS = 'magic version type flags size count sequence ack time_ns raw_size reserved'.split()
REPLY_FIELDS = 'size flags lane result deferred call body deferred_opcode'.split()


def receive(sock, size):
    data = bytearray()
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


class Frame:
    """A header's fields as attributes, and the payload with its padding. bytes() updates size and
    raw_size unless they were set by hand."""

    def __init__(self, head=None, payload=b'', **fields):
        values = FRAME.unpack(head) if head else (0x4452424F, 1, CONTROL, 0, 0, 0, 0, 0, 0, 0, 0)
        self.__dict__.update(zip(FIELDS, values))
        self.payload = payload
        if not head:
            self.fit()
        self.__dict__.update(fields)

    @staticmethod
    def read(sock):
        head = receive(sock, FRAME.size)
        return Frame(head, receive(sock, FRAME.unpack(head)[4]))

    def fit(self):
        """Pads the payload and sets the sizes. Call it after changing the payload."""
        self.raw_size = len(self.payload) + (-len(self.payload) % 8 if self.type != CONTROL else 0)
        self.payload += bytes(-len(self.payload) % 8)
        self.size = len(self.payload)
        return self

    def copy(self):
        other = Frame.__new__(Frame)
        other.__dict__.update(self.__dict__)
        return other

    def bytes(self):
        return FRAME.pack(*(getattr(self, name) for name in FIELDS)) + self.payload


class Reply:
    def __init__(self, head=None, data=b'', **fields):
        self.__dict__.update(zip(REPLY_FIELDS, REPLY.unpack(head) if head else (0,) * 8))
        self.data = data
        if not head:
            self.fit()
        self.__dict__.update(fields)

    def fit(self):
        """Sets the sizes. Call it after changing the body."""
        self.body = len(self.data)
        self.size = REPLY.size + self.body + -self.body % 8
        return self

    def copy(self):
        other = Reply.__new__(Reply)
        other.__dict__.update(self.__dict__)
        return other

    def bytes(self):
        return REPLY.pack(*(getattr(self, name) for name in REPLY_FIELDS)) + self.data + bytes(-len(self.data) % 8)


def replies_of(frame):
    """Returns the replies of a frame that is not packed."""
    found, at = [], 0
    for _ in range(frame.count):
        head = frame.payload[at:at + REPLY.size]
        size, body = REPLY.unpack(head)[0], REPLY.unpack(head)[6]
        found.append(Reply(head, frame.payload[at + REPLY.size:at + REPLY.size + body]))
        at += size
    return found


def replies_into(frame, replies):
    frame.payload = b''.join(r.bytes() for r in replies)
    frame.count = len(replies)
    return frame.fit()


# ---- the part of msgpack that control maps need ----

def unpack(data):
    value, _ = _unpack(data, 0)
    return value


def _number(data, at, size, signed=False):
    return int.from_bytes(data[at:at + size], 'big', signed=signed), at + size


def _items(data, at, n):
    found = []
    for _ in range(n):
        value, at = _unpack(data, at)
        found.append(value)
    return found, at


def _map(data, at, n):
    found, at = _items(data, at, 2 * n)
    return dict(zip(found[::2], found[1::2])), at


def _unpack(data, at):
    kind = data[at]
    at += 1
    if kind < 0x80:
        return kind, at
    if kind >= 0xe0:
        return kind - 256, at
    if kind < 0x90:
        return _map(data, at, kind & 15)
    if kind < 0xa0:
        return _items(data, at, kind & 15)
    if kind < 0xc0:
        return data[at:at + (kind & 31)].decode('utf-8', 'surrogateescape'), at + (kind & 31)
    if 0xcc <= kind <= 0xcf:
        return _number(data, at, 1 << kind - 0xcc)
    if 0xd0 <= kind <= 0xd3:
        return _number(data, at, 1 << kind - 0xd0, True)
    if kind in (0xc4, 0xc5, 0xc6, 0xd9, 0xda, 0xdb):
        n, at = _number(data, at, {0: 1, 1: 2, 2: 4}[(kind - 0xc4) if kind < 0xd0 else (kind - 0xd9)])
        raw = data[at:at + n]
        return (raw if kind < 0xd0 else raw.decode('utf-8', 'surrogateescape')), at + n
    if kind in (0xdc, 0xdd, 0xde, 0xdf):
        n, at = _number(data, at, 2 if kind in (0xdc, 0xde) else 4)
        return (_items if kind < 0xde else _map)(data, at, n)
    return {0xc0: None, 0xc2: False, 0xc3: True}[kind], at


def pack(value):
    if value is None:
        return b'\xc0'
    if isinstance(value, bool):
        return b'\xc3' if value else b'\xc2'
    if isinstance(value, int):
        if value < 0:
            return b'\xd3' + value.to_bytes(8, 'big', signed=True)
        return bytes([value]) if value < 128 else b'\xcf' + value.to_bytes(8, 'big')
    if isinstance(value, str):
        raw = value.encode('utf-8', 'surrogateescape')
        return b'\xdb' + len(raw).to_bytes(4, 'big') + raw
    if isinstance(value, (bytes, bytearray)):
        return b'\xc6' + len(value).to_bytes(4, 'big') + bytes(value)
    if isinstance(value, dict):
        return b'\xdf' + len(value).to_bytes(4, 'big') + b''.join(pack(k) + pack(v) for k, v in value.items())
    return b'\xdd' + len(value).to_bytes(4, 'big') + b''.join(pack(v) for v in value)
