# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A hostile server: a proxy before a real one that changes frames, replies and messages and keeps
the rest of the protocol valid."""
import random
import re
import socket
import threading

from frames import CONTROL, GIVEN, MORE, PART, PREFACE, REPLIES, TEXT, TEXT_STDERR, Frame, Reply, pack, receive, replies_into, replies_of, unpack
from listening import Listener, end

LEFT_OUT_S = 1               # seconds from the omission of a frame until the connections are closed
NUMBERS = (0, 1, 2, 7, 8, 31, 63, 64, 255, 999, 1000, 4095, 4096, 65535, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 8, (1 << 32) - 1)
LARGE = NUMBERS + (1 << 32, 1 << 47, (1 << 63) - 1, 1 << 63, (1 << 64) - 4096, (1 << 64) - 1)
JOIN, JOIN_DATA = 4, 1       # a control message's type, and its code
TEXTS = ('', '\x1b[2J\x1b]0;title\x07', '\x9b2J', 'x' * 5000, '\udcff\udc9b', '\u202eabc', 'line\nline\r\n', '%s%n%p' * 20)
STEER = re.compile('[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\x1b')


class Hostile:
    """The proxy of one program: makes a few changes at places that the seed chooses and forwards
    everything else unchanged."""

    def __init__(self, url, seed, striped):
        self.random, self.log, self.lock = random.Random(seed), [], threading.Lock()
        self.texts = []      # made-up output of kernels
        self.passed = 0      # the client has the server's replies up to this number
        host, port = url.split('//')[1].rsplit(':', 1)
        self.server, self.open, self.seen = (host, int(port)), [], dict.fromkeys(range(256), 0)
        # (type, n): the n-th frame of that type is changed. Control messages are few and come
        # first; parts come over stripes only.
        kinds = (REPLIES, REPLIES, CONTROL) + ((PART, PART, GIVEN) if striped else ())
        self.places = [(kind, self.random.choice((0, 1, 2, 3, self.random.randrange(12), self.random.randrange(90 if kind == REPLIES else 12))))
                       for kind in (self.random.choice(kinds) for _ in range(self.random.choice((1, 1, 2, 6))))]
        self.listener = Listener(self.carry)
        self.url = 'tcp:' + self.listener.address

    def carry(self, client):
        server = socket.create_connection(self.server)
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.open.append(server)
        # shift: by how much the client's number of a reply is above the server's
        state = {'shift': 0, 'held': None}
        threading.Thread(target=self.up, args=(client, server, state), daemon=True).start()
        self.down(server, client, state)

    def up(self, client, server, state):
        try:
            server.sendall(receive(client, PREFACE))
            first = Frame.read(client)
            if first.type == CONTROL:
                self.resume(first, state)
            server.sendall(first.bytes())
            while data := client.recv(65536):
                server.sendall(data)
        except (OSError, EOFError):
            pass
        end(server)

    def resume(self, frame, state):
        """A client that resumes counts what it was sent. The server is told what it has of the
        server's replies: otherwise one that was left out would never be sent again if another was
        added, and the client would wait for it without end."""
        message = unpack(frame.payload)
        if message.get('type') != JOIN or message.get('code') != JOIN_DATA:
            return
        with self.lock:
            state['shift'] = message['received'] - self.passed
            frame.payload = pack(dict(message, received=self.passed))
        frame.fit()

    def pass_on(self, number, count):
        """The client is sent the server's replies from this number on."""
        with self.lock:
            if number <= self.passed + 1:
                self.passed = max(self.passed, number + count - 1)

    def down(self, server, client, state):
        try:
            while True:
                frame = Frame.read(server)
                for data in self.change(frame, state, (server, client)):
                    client.sendall(data)
        except (OSError, EOFError):
            pass
        end(client)

    def change(self, frame, state, ends):
        """Returns what to send for this frame, as pieces of bytes."""
        with self.lock:
            place = self.seen[frame.type]
            self.seen[frame.type] += 1
            mine = (frame.type, place) in self.places
        replies = frame.sequence, frame.count
        type_was = frame.type
        if type_was == REPLIES:
            frame.sequence += state['shift']
        out = [frame]
        if mine:
            kinds = {REPLIES: REPLY_CHANGES, CONTROL: CONTROL_CHANGES, PART: PART_CHANGES, GIVEN: PART_CHANGES}.get(frame.type, ())
            kind = self.random.choice(kinds + FRAME_CHANGES) if not (frame.type == REPLIES and frame.flags) else self.random.choice(FRAME_CHANGES)
            before = frame.count
            out = kind(self.random, frame, state)
            if kind is reply_text:
                self.texts += [reply.data for reply in replies_of(frame) if reply.flags & TEXT]
            if kind is replies_exchanged:
                state['held_replies'] = replies
            if frame.type == REPLIES and kind in REPLY_CHANGES and kind is not replies_exchanged:
                state['shift'] += sum(f.count for f in out if f.type == REPLIES) - before
            self.log.append(f'frame {place} of its type {type_was}: {kind.__name__}')
            if not out and frame.type in (REPLIES, CONTROL):
                threading.Timer(LEFT_OUT_S, lambda: [end(s) for s in ends]).start()
        elif state['held'] and frame.type == REPLIES:
            held, state['held'] = state['held'], None
            held.sequence, frame.sequence = held.sequence + frame.count, held.sequence
            out = [frame, held]
            self.pass_on(*state['held_replies'])
        if type_was == REPLIES and any(f.type == REPLIES for f in out):
            self.pass_on(*replies)
        return [f.bytes() for f in out]

    def close(self):
        self.listener.close()
        for s in self.open:
            end(s)
            s.close()


# ---- what is changed: (random, frame, state) -> frames ----

def header_field(r, frame, state):
    name, top = r.choice((('magic', 32), ('version', 8), ('type', 8), ('flags', 16), ('size', 32), ('count', 32), ('sequence', 64), ('ack', 64), ('raw_size', 32),
                          ('reserved', 32)))
    value = r.choice((getattr(frame, name) + r.choice((-8, -1, 1, 8)), r.choice(LARGE), r.getrandbits(top)))
    setattr(frame, name, value % (1 << top))
    return [frame]


def frame_type(r, frame, state):
    frame.type = r.randrange(1, 9)
    return [frame]


def acknowledge(r, frame, state):
    frame.ack = r.choice((frame.ack + 1, frame.ack + 1000, 1 << 63, (1 << 64) - 1))
    return [frame]


def made_up_frame(r, frame, state):
    new = Frame(payload=r.randbytes(r.choice((0, 8, 64, 4096))), type=r.choice((1, 3, 4, 5, 6, 7)), sequence=r.choice(LARGE), ack=r.choice((0, 1, 1 << 40)), count=r.choice(NUMBERS))
    return r.choice(([new, frame], [frame, new]))


def made_up_message(r, frame, state):
    message = {'type': r.randrange(0, 15), 'value': r.choice(LARGE), 'code': r.choice(NUMBERS), 'secret': bytes(16), 'text': r.choice(TEXTS),
               'received': r.choice(LARGE), 'sent': r.choice(LARGE), 'bytes': r.choice(LARGE), 'attempt': 1,
               'free': r.choice(LARGE), 'total': r.choice(LARGE)}
    new = Frame(payload=pack(message)).fit()
    return r.choice(([new, frame], [frame, new], [new] * 50 + [frame]))


def cut_short(r, frame, state):
    frame.payload = frame.payload[:r.randrange(len(frame.payload) + 1)]
    return [frame]


def random_bytes(r, frame, state):
    data = bytearray(frame.payload)
    for _ in range(r.randrange(1, 8)):
        if data:
            data[r.randrange(min(len(data), 64))] = r.getrandbits(8)
    frame.payload = bytes(data)
    return [frame]


def reply_field(r, frame, state):
    replies = replies_of(frame)
    reply = r.choice(replies)
    name, top = r.choice((('size', 32), ('flags', 16), ('lane', 16), ('result', 32), ('deferred', 32), ('call', 64), ('body', 32), ('deferred_opcode', 32)))
    setattr(reply, name, r.choice((getattr(reply, name) + r.choice((-8, -1, 1, 8)), r.choice(NUMBERS), r.getrandbits(top))) % (1 << top))
    return [replies_into(frame, replies)]


def reply_result(r, frame, state):
    replies = replies_of(frame)
    reply = r.choice(replies)
    reply.result = r.choice((0, 1, 2, 600, 700, 999, 1000, 1 << 31, (1 << 32) - 1))
    if r.random() < 0.5:
        reply.data = b''
        reply.fit()
    return [replies_into(frame, replies)]


def reply_grown(r, frame, state):
    replies = replies_of(frame)
    reply = r.choice(replies)
    reply.data += b'G' * r.choice((1, 7, 8, 64, 2048, 40000, 1 << 20))
    reply.fit()
    return [replies_into(frame, replies)]


def reply_shrunk(r, frame, state):
    replies = replies_of(frame)
    reply = r.choice(replies)
    reply.data = reply.data[:r.randrange(len(reply.data) + 1)]
    reply.fit()
    return [replies_into(frame, replies)]


def reply_repeated(r, frame, state):
    replies = replies_of(frame)
    at = r.randrange(len(replies))
    times = r.choice((1, 1, 2, 50))
    if r.random() < 0.5 or len(frame.payload) * times > 1 << 20:
        again = frame.copy()
        again.sequence += frame.count
        return [frame, again]
    return [replies_into(frame, replies[:at] + [replies[at]] * times + replies[at:])]


def reply_in_pieces(r, frame, state):
    """Adds pieces before the reply, possibly with more bytes than it may have. The reply itself may
    then be empty."""
    replies = replies_of(frame)
    at = r.randrange(len(replies))
    piece = replies[at].copy()
    piece.flags |= MORE
    piece.data = b'P' * r.choice((0, 1, 8, 64, 2048, 32736, 100000))
    piece.fit()
    last = replies[at].copy()
    if r.random() < 0.5:
        last.data = b''
        last.fit()
    # Never pieces without a reply: a client cannot distinguish a silent server from a long call.
    new = r.choice(([piece, last], [piece, piece, last], [piece] * 9 + [last]))
    return [replies_into(frame, replies[:at] + new + replies[at + 1:])]


def reply_left_out(r, frame, state):
    return []


def replies_exchanged(r, frame, state):
    """Sends the frame after the next one. The frames are renumbered in the order sent."""
    state['held'] = frame
    return []


def reply_text(r, frame, state):
    text = Reply(data=r.choice((b'', b'\x1b]52;c;cm0=\x07\x1b[2J\n', b'\xc2\x9b2J\n', b'T' * 32000, b'T' * 32768, b'T' * 300000, r.randbytes(100))),
                 flags=TEXT | r.choice((0, 0, TEXT_STDERR, MORE, 8)), call=r.choice((0, 0, 0, 1)), result=r.choice((0, 0, 0, 1)))
    return [replies_into(frame, r.choice(([text] + replies_of(frame), replies_of(frame) + [text] * 3)))]


def reply_body(r, frame, state):
    """Changes numbers inside a reply of the right size."""
    replies = replies_of(frame)
    reply = r.choice(replies)
    if len(reply.data) >= 8:
        at = r.randrange(len(reply.data) // 8) * 8 if len(reply.data) < 4096 else 0
        reply.data = reply.data[:at] + r.choice(LARGE).to_bytes(8, 'little') + reply.data[at + 8:]
    return [replies_into(frame, replies)]


def wild(r, value, depth=0):
    """Changes one field of a control map."""
    if isinstance(value, dict) and value:
        key = r.choice(list(value))
        if r.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return dict(value, **{key: wild(r, value[key], depth + 1)}) if isinstance(key, str) else {**value, key: wild(r, value[key], depth + 1)}
    if isinstance(value, list):
        if value and r.random() < 0.6:
            at = r.randrange(len(value))
            return value[:at] + [wild(r, value[at], depth + 1)] + value[at + 1:]
        return r.choice((value * 2, value * 300, [], [[]]))
    if isinstance(value, int):
        return r.choice((r.choice(LARGE), value + 1, value - 1 if value else -1, -1, 'text', None, [value]))
    if isinstance(value, str):
        return r.choice(TEXTS + (7, b'bytes'))
    return r.choice((b'', b'x' * 17, r.randbytes(16), 'text', 3))


def message_field(r, frame, state):
    frame.payload = pack(wild(r, unpack(frame.payload)))
    return [frame.fit()]


def message_fields(r, frame, state):
    message = unpack(frame.payload)
    for _ in range(5):
        message = wild(r, message)
        if not isinstance(message, dict):
            break
    frame.payload = pack(message)
    return [frame.fit()]


def message_repeated(r, frame, state):
    return [frame] * r.choice((2, 3, 100))


def message_left_out(r, frame, state):
    return []


def message_type(r, frame, state):
    frame.payload = pack(dict(unpack(frame.payload), type=r.randrange(0, 13)))
    return [frame.fit()]


def part_field(r, frame, state):
    name = r.choice(('count', 'ack', 'sequence', 'type'))
    setattr(frame, name, r.choice((getattr(frame, name) + r.choice((-1, 1, 1 << 20)), r.choice(NUMBERS))) % (1 << (8 if name == 'type' else 32)))
    return [frame]


def part_repeated(r, frame, state):
    return [frame, frame]


FRAME_CHANGES = (header_field, frame_type, acknowledge, made_up_frame, made_up_message, cut_short, random_bytes)
REPLY_CHANGES = (reply_field, reply_field, reply_result, reply_grown, reply_grown, reply_shrunk, reply_repeated, reply_repeated, reply_in_pieces, reply_in_pieces,
                 reply_left_out, replies_exchanged, reply_text, reply_text, reply_body)
CONTROL_CHANGES = (message_field, message_field, message_fields, message_fields, message_repeated, message_left_out, message_type)
PART_CHANGES = (part_field, part_field, part_repeated)
