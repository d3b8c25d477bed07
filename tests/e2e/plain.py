# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Device memory on a driver without virtual memory management: the server grants slabs, in which the
client places allocations. Their number of round trips, what a program sees, addresses that are in
use in the client's process, and servers that grant impossible slabs.

    plain.py OUTBOARD SERVER PLAIN_PROGRAM soft|null
"""
import re
import socket
import subprocess
import sys
import threading

sys.path.append(sys.path[0] + '/../lib')
import waiting
from frames import CONTROL, PREFACE, REPLIES, Frame, pack, receive, replies_into, replies_of, unpack
from listening import Listener, end
from outboard_test import ENV, Server, check, finish, needs

OUTBOARD, SERVER, PROGRAM, DRIVER = sys.argv[1:5]
MIB = 1 << 20
BASE = 0x480000000000  # where the software device allocates, in these tests; no sanitizer has its heap or shadow there
NO_VMM = {'OUTBOARD_FAULT': 'cuMemAddressReserve:*=801', 'OUTBOARD_SOFT_MEMORY': '2G', 'OUTBOARD_SOFT_BASE': f'{BASE:x}'}


def run(url, *words, env=None):
    """Returns the program's end, and how often each call was sent and waited for."""
    done = subprocess.run([OUTBOARD, 'run', '--stats', '--server', url, '--', PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=waiting.LONG,
                          env={**ENV, 'OUTBOARD_LOG': 'info', **(env or {})})
    calls = {name: (int(sent), int(trips)) for name, sent, trips in re.findall(r'outboard: (\w+) +(\d+) +(\d+)\b', done.stderr)}
    return done, calls


def right(what, done, calls, **limits):
    """Checks the program's end, and the number of times that calls were sent: at least, at most."""
    check(f'{what}: every result is right', done.returncode == 0 and 'right' in done.stdout, (done.returncode, done.stdout, done.stderr[-1500:]))
    for name, (least, most) in limits.items():
        sent = calls.get(name, (0, 0))[0]
        check(f'{what}: {name} is sent {least} to {most} times', least <= sent <= most, (sent, calls))


def counted(url):
    done, calls = run(url, 'churn', 20000)
    right('20,000 allocations', done, calls, mem_alloc=(20000, 20000), mem_alloc_plain=(0, 0), mem_slab=(0, 0))
    done, calls = run(url, 'churn', 1000, env={'OUTBOARD_OPT': '-grant'})
    right('without the switch', done, calls, mem_alloc=(0, 0), mem_alloc_plain=(1000, 1000), mem_slab=(0, 0))


def programs(url):
    done, calls = run(url, 'grow', 500)
    right('500 MiB', done, calls, mem_alloc=(500, 500), mem_alloc_plain=(0, 0), mem_slab=(2, 6), mem_slab_free=(1, 6))
    done, calls = run(url, 'exact')
    right('all memory', done, calls, mem_slab=(4, 100), mem_alloc=(450, 550))
    single = run(url, 'exact', env={'OUTBOARD_OPT': '-grant'})[0]
    got, got_single = (int(re.search(r'got (\d+)', each.stdout)[1]) for each in (done, single))
    check('as many allocations fit as without slabs', got >= got_single, (got, got_single))
    done, calls = run(url, 'scatter', 25)
    right('scattered allocations', done, calls, mem_slab=(4, 100))
    done, calls = run(url, 'contexts', 9)
    right('contexts', done, calls, mem_slab=(9, 15), mem_alloc_plain=(0, 0))
    done, calls = run(url, 'wrong')
    right('wrong calls', done, calls)


def clashes(url):
    first = int(re.search(r'first at (\w+)', run(url, 'grow', 1)[0].stdout)[1], 16)
    done, calls = run(url, 'clash', f'{first:x}', 4)
    right('the first slab clashes', done, calls, mem_slab=(2, 6), mem_slab_free=(1, 9), mem_alloc_plain=(0, 0))
    check('the first slab clashes: memory lies elsewhere', f'first at {first:x}' not in done.stdout, done.stdout)
    done, calls = run(url, 'clash', f'{first:x}', 2048)
    right('every slab clashes', done, calls, mem_slab=(4, 4), mem_slab_free=(5, 5), mem_alloc_plain=(200, 200))
    check('every slab clashes: it is said', 'addresses of the server\'s device memory are in use in this process' in done.stderr, done.stderr)


# ---- a hostile server ----

class Liar:
    """A proxy that passes each frame of the server through change(frame)."""

    def __init__(self, url, change):
        host, port = url.split('//')[1].rsplit(':', 1)
        self.server, self.change = (host, int(port)), change
        self.listener = Listener(self.carry)
        self.url = 'tcp:' + self.listener.address

    def carry(self, client):
        server = socket.create_connection(self.server)
        threading.Thread(target=self.up, args=(client, server), daemon=True).start()
        try:
            while True:
                frame = Frame.read(server)
                self.change(frame)
                client.sendall(frame.bytes())
        except (OSError, EOFError):
            end(client)
            end(server)

    @staticmethod
    def up(client, server):
        try:
            server.sendall(receive(client, PREFACE))
            while data := client.recv(65536):
                server.sendall(data)
        except (OSError, EOFError):
            pass
        end(server)


def welcome_with(change):
    """Changes the first slab in the welcome."""
    def changed(frame):
        if frame.type != CONTROL:
            return
        message = unpack(frame.payload)
        if message.get('type') == 2:
            device = message['devices'][0]
            device['range'], device['grant'] = change(*device['range'])
            frame.payload = pack(message)
            frame.fit()
    return changed


def slab_with(change):
    """Changes the answers to mem_slab: the only calls of this program with two numbers for a
    result."""
    granted = []

    def changed(frame):
        if frame.type == CONTROL and unpack(frame.payload).get('type') == 2:
            granted.append(unpack(frame.payload)['devices'][0]['range'][0])
        if frame.type != REPLIES:
            return
        replies = replies_of(frame)
        for reply in replies:
            if len(reply.data) == 16 and reply.result == 0:
                addr, size = (int.from_bytes(reply.data[at:at + 8], 'little') for at in (0, 8))
                reply.data = b''.join((n % (1 << 64)).to_bytes(8, 'little') for n in change(addr, size, granted[0]))
        replies_into(frame, replies)
    return changed


def hostile(url):
    for what, change in {
            'a first slab that is not aligned': lambda base, size: ([base + 512, size], size),
            'at 0': lambda base, size: ([0, size], size),
            'that wraps': lambda base, size: ([(1 << 64) - size, size], size),
            'above the limit': lambda base, size: ([base, 512 * MIB], 512 * MIB),
            'larger than what is granted of it': lambda base, size: ([base, size], size // 2)}.items():
        liar = Liar(url, welcome_with(change))
        done, _ = run(liar.url, 'churn', 10)
        check(f'{what}: an error', done.returncode == 1 and 'broke the protocol' in done.stderr, (done.stdout, done.stderr))
        liar.listener.close()
    for what, change, words in (
            ('a slab that is not aligned', lambda addr, size, first: (addr + 512, size), 'is not what was asked for'),
            ('at 0', lambda addr, size, first: (0, size), 'is not what was asked for'),
            ('that wraps', lambda addr, size, first: ((1 << 64) - size, size), 'is not what was asked for'),
            ('smaller than needed', lambda addr, size, first: (addr, 65536), 'is not what was asked for'),
            ('larger than asked for', lambda addr, size, first: (addr, 256 * MIB), 'is not what was asked for'),
            ('above the limit', lambda addr, size, first: (addr, 512 * MIB), 'protocol'),
            ('over the first', lambda addr, size, first: (first, size), 'the session has already'),
            ('into the first', lambda addr, size, first: (first - size + 65536, size), 'the session has already')):
        liar = Liar(url, slab_with(change))
        done, _ = run(liar.url, 'grow', 100)
        check(f'{what}: an error', done.returncode == 1 and words in done.stderr and 'cuMemAlloc' in done.stdout, (done.stdout, done.stderr))
        liar.listener.close()


needs('grant,async')
with Server(SERVER, '--driver', DRIVER, env=NO_VMM) as server:
    counted(server.url)
    if DRIVER == 'soft':
        programs(server.url)
        clashes(server.url)
        hostile(server.url)
if DRIVER == 'soft':
    with Server(SERVER, '--driver', DRIVER, env={**NO_VMM, 'OUTBOARD_SOFT_DEVICES': '3'}) as server:
        done, calls = run(server.url, 'devices')
        # The first slab of the first device comes with the welcome.
        right('three devices', done, calls, mem_alloc=(8, 8), mem_alloc_plain=(0, 0), mem_slab=(2, 2))
finish()
