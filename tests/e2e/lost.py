# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""One side of a session disappears: the program gets a CUDA error at once and on every later call;
the server and other sessions continue; no resource is leaked.

    lost.py OUTBOARD SERVER INIT_PROGRAM DRIVER [unix|shm]
"""
import fcntl
import mmap
import os
import random
import signal
import socket
import struct
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
import waiting
from outboard_test import Server, Session, bad, check, gone_within, needs

OUTBOARD, SERVER, PROGRAM, DRIVER = sys.argv[1:5]
SCHEME = sys.argv[5] if len(sys.argv) > 5 else 'unix'
UNAVAILABLE = '46'
if SCHEME == 'shm':
    needs('shm')
MAGIC, VERSION, PREFACE_VERSION = 0x4452424F, 1, 2  # magic numbers of frames and of prefaces


def dial(url):
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(waiting.LONG)
    connection.connect(url.split(':', 1)[1])
    return connection


def frame(payload, kind=1, count=1, sequence=1, size=None):
    return struct.pack('<IBBHIIQQQII', MAGIC, VERSION, kind, 0, len(payload) if size is None else size, count, sequence, 0, 0, len(payload) if size is None else size, 0) + payload


def hello(shm=0):
    body = b'\x82\xa4type\x01\xa3shm' + bytes([shm])
    padded = body + bytes(-len(body) % 8)
    return struct.pack('<IHBBQ', MAGIC, PREFACE_VERSION, 1, 0, 0) + struct.pack('<IBBHIIQQQII', MAGIC, VERSION, 4, 0, len(padded), 0, 0, 0, 0, len(body), 0) + padded


def until_closed(connection):
    """Returns everything the server sends before it closes the connection; None: it does not close
    it."""
    said = b''
    try:
        while True:
            part = connection.recv(65536)
            if not part:
                return said
            said += part
    except socket.timeout:
        return None
    except OSError:
        return said


def first_deferred(connection):
    """Returns the deferred error of the first reply; None: no reply."""
    data = b''
    try:
        while True:
            part = connection.recv(65536)
            if not part:
                return None
            data += part
            at = 0
            while len(data) - at >= 48:
                kind, size = data[at + 5], struct.unpack_from('<I', data, at + 8)[0]
                if len(data) - at < 48 + size:
                    break
                if kind == 2:
                    return struct.unpack_from('<I', data, at + 48 + 12)[0]
                at += 48 + size
    except OSError:
        return None


RING, ALL = 2 << 20, 4096 + 2 * (2 << 20)
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
# Offsets in the header of the ring to the server; that of the ring to the client begins at NEXT.
HEAD, BASE, TAIL, NEXT = 0, 8, 128, 512


def with_memory(server, size=ALL, seals=SEALS, bring=True):
    """Opens a session over shared memory. Returns the connection, the memory, and the server's
    answer."""
    fd = os.memfd_create('test', os.MFD_ALLOW_SEALING)
    os.truncate(fd, size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    connection = dial(server.url)
    connection.sendall(hello()[:16])
    socket.send_fds(connection, [hello(1)[16:]], [fd] if bring else [])
    memory = mmap.mmap(fd, size)
    os.close(fd)
    return connection, memory, connection.recv(1 << 16)


def hostile_memory(server):
    """Invalid memory, and invalid numbers in it."""
    for name, options in {'that is not sealed': {'seals': 0}, 'of the wrong size': {'size': ALL - 4096}, 'that never comes': {'bring': False}}.items():
        connection, _, said = with_memory(server, **options)
        check(f'hostile client, memory {name}: refused', b'memory' in said, said)
        check(f'hostile client, memory {name}: hung up on', until_closed(connection) is not None)
        connection.close()
    dice = random.Random(11)
    ends = 0
    for attempt in range(24):
        connection, memory, said = with_memory(server)
        check('memory is taken', b'shm' in said, said) if attempt == 0 else None
        for _ in range(dice.randrange(1, 40)):
            place = dice.choice((HEAD, BASE, TAIL, 256, 384)) + NEXT * dice.randrange(2)
            number = dice.choice((dice.getrandbits(64), dice.randrange(2 * RING), 2 ** 64 - dice.randrange(2 * RING), RING, RING + 8, 1 << dice.randrange(64)))
            memory[place:place + 8] = struct.pack('<Q', number)
            for at in range(4096, 8192, 512):
                memory[at:at + 8] = dice.randbytes(8)
            try:
                connection.send(b'x')
            except OSError:
                break
        connection.shutdown(socket.SHUT_WR)
        ends += until_closed(connection) is not None
        connection.close()
        memory.close()
    check('hostile client, random numbers in the memory: each is hung up on', ends == 24, ends)


def hostile(server):
    """Clients that violate the protocol. The server must send an error or close the connection
    within its hello time-out."""
    dice = random.Random(7)
    record = struct.pack('<IHH', 8, 0x0102, 0)
    cases = {
        'random bytes': dice.randbytes(4096),
        'a wrong magic': struct.pack('<IHBBQ', 1, PREFACE_VERSION, 1, 0, 0),
        'a wrong version': struct.pack('<IHBBQ', MAGIC, 99, 1, 0, 0),
        'joining nobody': struct.pack('<IHBBQ', MAGIC, PREFACE_VERSION, 2, 0, 12345) + frame(b'\x81\xa4type\x04' + bytes(1), 4, 0, 0),
        'half a preface': struct.pack('<IH', MAGIC, PREFACE_VERSION),
        'a preface, then silence': struct.pack('<IHBBQ', MAGIC, PREFACE_VERSION, 1, 0, 0),
        'a call before the hello': struct.pack('<IHBBQ', MAGIC, PREFACE_VERSION, 1, 0, 0) + frame(record),
        'a frame of four gigabytes': hello() + frame(b'', size=0xfffffff8),
        'an unknown opcode': hello() + frame(struct.pack('<IHH', 8, 0xffff, 0)),
        'a record longer than its frame': hello() + frame(struct.pack('<IHH', 4096, 0x0102, 0)),
        'a lane beyond the maximum': hello() + frame(struct.pack('<IHH', 8, 0x0102, 1024)),
        'a gap in the numbers': hello() + frame(record, sequence=5),
        'a launch of an unknown kernel': hello() + frame(struct.pack('<IHH', 8 + 256, 0x0801, 0) + bytes(256)),
        'random frames': hello() + b''.join(frame(dice.randbytes(64), sequence=n) for n in range(1, 50)),
    }
    for name, data in cases.items():
        connection = dial(server.url)
        try:
            connection.sendall(data)
        except OSError:
            pass
        said = until_closed(connection)
        check(f'hostile client, {name}: hung up on', said is not None)
        connection.close()
    # Asynchronous calls with addresses that are not the session's do not violate the protocol: they
    # have no effect, and the next reply reports the error.
    context = struct.pack('<IHHQ', 16, 0x0101, 0, 1)
    for name, call in {
        'freeing what was never allocated': struct.pack('<IHHQQ', 24, 0x0304, 0, 0xdead0000, 0),
        'writing beyond what was granted': struct.pack('<IHHQQQQ', 40, 0x0403, 0, 0x7fffffff0000, 8, 0, 1),
        'filling the worker\'s own memory': struct.pack('<IHHQQQQQII', 56, 0x0401, 0, 0x555555554000, 4096, 4096, 1, 0, 0, 1),
    }.items():
        connection = dial(server.url)
        connection.sendall(hello() + frame(context + call + record, count=3))
        deferred = first_deferred(connection)
        check(f'hostile client, {name}: the next reply says so', deferred not in (0, None), deferred)
        connection.close()
    if SCHEME == 'shm':
        hostile_memory(server)
    check('the server lives', server.process.poll() is None)


def main():
    with tempfile.TemporaryDirectory() as folder:
        server = Server(SERVER, '--driver', DRIVER, listen=f'{SCHEME}:{folder}/s')
        other = Session(OUTBOARD, PROGRAM, server.url)
        check('two sessions start', other.first == ['0', '0'], other.first)

        session = Session(OUTBOARD, PROGRAM, server.url)
        worker = server.worker(session)
        os.kill(worker, signal.SIGKILL)
        gone_within([worker], waiting.LONG)
        results, err, took = session.go_on()
        check('worker killed: both later calls fail', session.first == ['0', '0'] and results == [UNAVAILABLE] * 2, (session.first, results, err))
        check('worker killed: at once', took < waiting.AT_ONCE, took)
        check('worker killed: the message says so', 'session is lost' in err, err)

        session = Session(OUTBOARD, PROGRAM, server.url, OUTBOARD_DEAD='2', OUTBOARD_GRACE='2')
        worker = server.worker(session)
        os.kill(worker, signal.SIGSTOP)
        results, err, took = session.go_on()
        check('worker frozen: both later calls fail', results == [UNAVAILABLE] * 2, (results, err))
        check('worker frozen: within the time-out', 1 < took < waiting.AT_ONCE, took)
        os.kill(worker, signal.SIGCONT)
        check('worker frozen, then thawed: it ends', gone_within([worker], waiting.LONG))

        session = Session(OUTBOARD, PROGRAM, server.url)
        worker = server.worker(session)
        session.program.kill()
        check('program killed: its worker does not wait for it', gone_within([worker], waiting.AT_ONCE))
        session.program.communicate()

        hostile(server)

        results, err, _ = other.go_on()
        check('the other session never noticed', results == ['0', '0'] and err == '', (results, err))

        session = Session(OUTBOARD, PROGRAM, server.url)
        everyone = server.children()
        server.process.kill()
        server.process.wait()
        results, err, took = session.go_on()
        check('server killed: both later calls fail at once', results == [UNAVAILABLE] * 2 and took < waiting.AT_ONCE, (results, took, err))
        check('server killed: no worker is left', gone_within(everyone, waiting.LONG), everyone)

        server = Server(SERVER, '--driver', DRIVER, listen=f'{SCHEME}:{folder}/s')
        session = Session(OUTBOARD, PROGRAM, server.url)
        check('a server starts on the socket file of a killed one', session.first == ['0', '0'], session.first)
        session.go_on()
        everyone = server.children()
        check('the server stops on SIGTERM', server.stop(sessions_too=False))
        check('SIGTERM: no worker, no socket file left', gone_within(everyone, waiting.LONG) and not os.path.exists(f'{folder}/s'))
    print(f'{len(bad)} wrong')
    return 1 if bad else 0


sys.exit(main())
