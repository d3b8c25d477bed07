# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A session with a ticket has the devices of the ticket, in its order, and no other, whatever its
client sends.

    pooled_devices.py OUTBOARD SERVER PROGRAM [PROGRAMS]

PROGRAMS: the folder of tests/programs; without it no program with kernels of its own is run.
"""
import socket
import struct
import subprocess
import sys

sys.path.append(sys.path[0] + '/../lib')
import waiting
from frames import CALLS, CONTROL, REPLIES, Frame, pack, replies_of, unpack
from outboard_test import ENV, Server, check, finish
from pooling import Balancer, Program, environment, reservation_of

OUTBOARD, SERVER, PROGRAM = sys.argv[1:4]
PROGRAMS = sys.argv[4] if len(sys.argv) > 4 else None
NAME, MIB = 'rack-1', 1 << 20
HELLO, WELCOME, FATAL = 1, 2, 10
OUT_OF_MEMORY, INVALID_DEVICE = 2, 101
CTX_CREATE, MEM_GROW, GRANULARITY, MEM_CREATE, MEM_GET_ACCESS = 0x201, 0x302, 0x310, 0x311, 0x316
GREEN_SPLIT, PEER_QUERY = 0xf01, 0xf10


class Raw:
    """A client that sends what it likes, in a session with a ticket."""

    def __init__(self, url, ticket):
        self.socket = socket.create_connection(('127.0.0.1', int(url.rsplit(':', 1)[1])), timeout=waiting.LONG)
        hello = dict(type=HELLO, value=0, code=0, secret=bytes(16), text='', version='0', program='raw', pid=1, codecs=0, codec=0, token='', grace=0,
                     ring=0, want_memory=0, want_share=0, want_priority=0, no_grant=0, slabs=0, ticket=ticket, ranges=[])
        self.socket.sendall(struct.pack('<IHBBQ', 0x4452424f, 2, 1, 0, 0) + Frame(payload=pack(hello)).bytes())
        self.welcome = unpack(Frame.read(self.socket).payload)
        self.sent = 0

    def call(self, opcode, body):
        """Returns (CUresult, None) of a synchronous call, or (None, text) if the session was ended."""
        body += bytes(-len(body) % 8)
        record = struct.pack('<IHH', 8 + len(body), opcode, 0) + body
        self.sent += 1
        frame = Frame(payload=record, type=CALLS, sequence=self.sent, count=1)
        frame.fit()
        self.socket.sendall(frame.bytes())
        while True:
            try:
                answer = Frame.read(self.socket)
            except EOFError:
                return None, ''
            if answer.type == CONTROL and (message := unpack(answer.payload))['type'] == FATAL:
                return None, message['text']
            if answer.type == REPLIES:
                for reply in replies_of(answer):
                    if reply.call == self.sent:
                        return reply.result, None

    def close(self):
        self.socket.close()


def uuids(devices):
    return ' '.join(device.hex() for device in devices)


def used(name, balancer, index):
    return balancer.last(name)['load']['devices'][index]['used']


def order(balancer, server, devices):
    for chosen in ([2], [3, 1], [0], [3, 2, 1, 0], [0, 2]):
        ticket = balancer.ticket(NAME, [devices[i] for i in chosen])
        with Program(OUTBOARD, PROGRAM, server.url, ticket) as p:
            check(f'{chosen}: the program sees these, in this order', p.do('devices') == uuids(devices[i] for i in chosen))
            check('each works', all(p.do(f'kernel {i}') == 'ok' for i in range(len(chosen))))
            check('there is no further one', p.do(f'kernel {len(chosen)}') != 'ok')
            check('memory is taken', p.do(f'alloc 0 {64 * MIB}') == '0')
            check('it is shown on the right device', balancer.beat(NAME, lambda _: used(NAME, balancer, chosen[0]) >= 64 * MIB) and
                  all(used(NAME, balancer, i) == 0 for i in range(4) if i not in chosen), balancer.last(NAME)['load'])


def hostile(balancer, server, devices):
    """Numbers of devices that the server has and the ticket has not."""
    def location(number):
        return struct.pack('<IIIi', 1, 0, 1, number)

    def raw():
        return Raw(server.url, balancer.ticket(NAME, [devices[2], devices[1]]))

    client = raw()
    check('the welcome lists two devices', [d['uuid'] for d in client.welcome['devices']] == [devices[2], devices[1]], client.welcome)
    client.close()
    for number in 2, 3, 15, 16, 255, -1, -2147483648, 2147483647:
        unsigned = number & 0xffffffff
        client = raw()
        for what, opcode, body in (
                ('cuMemGetAllocationGranularity', GRANULARITY, location(number) + struct.pack('<IHBB', 0, 0, 0, 0)),
                ('cuMemCreate', MEM_CREATE, struct.pack('<QQQ', 1 << 40, 2 * MIB, 0) + location(number) + struct.pack('<HBB4x', 0, 0, 0)),
                ('cuMemGetAccess', MEM_GET_ACCESS, struct.pack('<QIi', 1 << 44, 1, number))):
            result, text = client.call(opcode, body)
            refusals = (INVALID_DEVICE, OUT_OF_MEMORY) if opcode == MEM_CREATE else (INVALID_DEVICE,)
            check(f'{what} of device {number} is refused', result in refusals, (result, text))
        client.close()
        for what, opcode, body in (
                ('a context', CTX_CREATE, struct.pack('<QII', 77, unsigned, 0)),
                ('peers', PEER_QUERY, struct.pack('<II', 0, unsigned)),
                ('a split', GREEN_SPLIT, struct.pack('<QIIII', 0, unsigned, 1, 0, 8))):
            client = raw()
            result, text = client.call(opcode, body)
            check(f'{what} of device {number} is refused', result not in (0, None) or text and 'no such' in text, (result, text))
            client.close()
        client = raw()
        result, text = client.call(MEM_GROW, struct.pack('<QQI4x', 1 << 44, 2 * MIB, unsigned))
        check(f'memory of device {number} is refused', result != 0, (result, text))
        client.close()
    for number in 0, 1:
        client = raw()
        result, text = client.call(GRANULARITY, location(number) + struct.pack('<IHBB', 0, 0, 0, 0))
        check(f'device {number} of the ticket is there', result == 0, (result, text))
        client.close()


def shared_room(balancer, server, devices):
    """Reservations are added up on each device apart."""
    size = int(Program.of(OUTBOARD, PROGRAM, server, balancer.ticket(NAME, devices[:1]), 'info 0').split()[1])
    half = size // 2 + MIB
    with Program(OUTBOARD, PROGRAM, server.url, balancer.ticket(NAME, devices[:2], memory=half)) as a:
        check('more than a half of two devices is taken', a.do('kernel 1') == 'ok')
        with Program(OUTBOARD, PROGRAM, server.url, balancer.ticket(NAME, devices[1:3], memory=half)) as b:
            check('another one does not fit on the second', b.do('kernel 0') != 'ok' and 'device 1 would be' in b.end())
        with Program(OUTBOARD, PROGRAM, server.url, balancer.ticket(NAME, devices[2:], memory=half)) as b:
            check('it fits on the other two', b.do('kernel 1') == 'ok')
        with Program(OUTBOARD, PROGRAM, server.url, balancer.ticket(NAME, devices[:1], exclusive=1)) as b:
            check('an exclusive one does not fit beside it', b.do('kernel 0') != 'ok')
        last = balancer.ticket(NAME, devices[3:], exclusive=1)
        check('the second has ended', balancer.beat(NAME, lambda beat: sum(h['state'] == 1 for h in beat['held']) == 1))
        with Program(OUTBOARD, PROGRAM, server.url, last) as b:
            check('an exclusive one fits on a free device', b.do('kernel 0') == 'ok', reservation_of(last))


def programs(balancer, server, devices):
    if not PROGRAMS:
        return
    for name, words in ('peers', '2 devices'), ('every_device', 'every_device: ok'):
        ticket = balancer.ticket(NAME, [devices[3], devices[1]])
        done = subprocess.run([OUTBOARD, 'run', '--server', server.url, '--', f'{PROGRAMS}/{name}'], capture_output=True, text=True, timeout=waiting.LONG,
                              env={**ENV, **environment(server.url, ticket)})
        check(f'{name} runs on the two devices', done.returncode == 0 and words in done.stdout, done.stdout + done.stderr)


BALANCER = Balancer()
with Server(SERVER, '--driver', 'soft', '--pool', BALANCER.url, '--pool-name', NAME, env={'OUTBOARD_SOFT_DEVICES': '4'}) as SERVED:
    FOUND = BALANCER.devices(NAME)
    check('the balancer learns of four devices', len(set(FOUND)) == 4, FOUND)
    order(BALANCER, SERVED, FOUND)
    hostile(BALANCER, SERVED, FOUND)
    shared_room(BALANCER, SERVED, FOUND)
    programs(BALANCER, SERVED, FOUND)
BALANCER.close()
finish()
