# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Memory, events and pools of several processes on one server: values, refused calls with their
codes, other tenants, killed processes and workers, limits, and connections that break.

    ipc.py OUTBOARD SERVER PROGRAM
"""
import os
import subprocess
import sys
import tempfile
import threading

sys.path.append(sys.path[0] + '/../lib')
import cutter
import waiting
from outboard_test import ENV, Server, check, finish, needs

OUTBOARD, SERVER, PROGRAM = sys.argv[1:4]
INVALID, MEMORY, CONTEXT, HANDLE, NOT_READY, NOT_SUPPORTED = 1, 2, 201, 400, 600, 801
MIB = 1 << 20
PIECE = 8 * MIB
WORDS = PIECE // 4
LARGE = 200 * MIB  # several mappings of the server
needs('resume,grant')


class Process:
    """The program, which executes one line at a time."""

    def __init__(self, server, **env):
        self.process = subprocess.Popen([OUTBOARD, 'run', '--server', getattr(server, 'url', server), '--', PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env={**ENV, **env})
        check('the program has started', self.process.stdout.readline() == 'ready\n')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(waiting.LONG)

    def do(self, verb, *numbers, text=None):
        """Returns the bytes that the call has returned, its result and a number."""
        line = f'{verb} {" ".join(f"{n:x}" for n in numbers) or "0"}' + (f' :{text}' if text else '')
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()
        words = self.process.stdout.readline().split()
        return (words[0] if len(words) == 3 else ''), int(words[-2]), int(words[-1], 16)

    def call(self, verb, *numbers, text=None):
        """The same for a call that must succeed: the bytes, or the number."""
        content, result, number = self.do(verb, *numbers, text=text)
        check(f'{verb}: success', result == 0, result)
        return content or number

    def refused(self, code, verb, *numbers, text=None, why=''):
        result = self.do(verb, *numbers, text=text)[1]
        check(f'{verb} {why}: {code}', result == code, result)

    def right(self, addr, value, words, what):
        wrong = self.call('other', addr, value, words)
        check(f'{what}: right values', wrong == 0, wrong)

    def kill(self):
        self.process.kill()
        self.process.wait(waiting.LONG)


def memory(a, b):
    addr = a.call('alloc', PIECE)
    a.call('fill', addr, 11, WORDS)
    check('the attribute says so', a.call('capable', addr) == 1)
    handle = a.call('get', addr)
    check('the handle of the same memory is the same', a.call('get', addr) == handle and a.call('get', addr + 4096) == handle)
    there = b.call('open', 1, text=handle)
    b.right(there, 11, WORDS, 'written by the first process')
    check('opened again: the same address', b.call('open', 1, text=handle) == there)
    b.call('fill', there + 4096, 12, 16)
    a.right(addr + 4096, 12, 16, 'written by the second process')
    a.right(addr + 4096 + 64, 11, 16, 'and nothing more')
    check('imported memory cannot be exported', b.call('capable', there) == 0)
    b.refused(INVALID, 'get', there, why='of imported memory')
    b.refused(INVALID, 'free', there, why='of imported memory')
    b.refused(INVALID, 'close', there + 512, why='inside the memory')
    b.call('close', there)
    b.right(there + 8192, 11, 16, 'still open once')
    b.call('close', there)
    b.refused(INVALID, 'close', there, why='once more')
    b.refused(INVALID, 'other', there, 11, 16, why='of closed memory')
    a.call('free', addr)
    large = a.call('alloc', LARGE)
    a.call('fill', large, 21, LARGE // 4)  # waits: the server has executed cuMemFree
    b.refused(HANDLE, 'open', 1, text=handle, why='of freed memory')
    there = b.call('open', 1, text=a.call('get', large))
    b.right(there, 21, LARGE // 4, 'an allocation of several mappings')
    b.call('fill', there + LARGE - 4096, 22, 1024)
    a.right(large + LARGE - 4096, 22, 1024, 'its end')
    a.call('free', large)
    a.right(a.call('alloc', PIECE), 0, 0, 'the first goes on')
    b.right(there, 21, LARGE // 4 - 1024, 'memory that was freed while it was open')
    b.call('close', there)


def refused_memory(a, b):
    addr = a.call('alloc', PIECE)
    handle = a.call('get', addr)
    a.refused(CONTEXT, 'open', 1, text=handle, why='in the exporting process')
    b.refused(INVALID, 'open', 0, text=handle, why='without the flag')
    b.refused(INVALID, 'open', 3, text=handle, why='with a wrong flag')
    for at, why in ((0, 'magic'), (6, 'kind'), (9, 'id'), (22, 'id'), (30, 'offset'), (38, 'size'), (46, 'span')):
        forged = handle[:2 * at] + f'{int(handle[2 * at:2 * at + 2], 16) ^ 0x11:02x}' + handle[2 * at + 2:]
        b.refused(HANDLE, 'open', 1, text=forged, why=f'with a forged {why}')
    a.refused(INVALID, 'get', 4096, why='of no memory')
    a.refused(INVALID, 'get', addr + (1 << 40), why='of no memory of the device')
    # A different offset inside what is mapped anyway is no secret of another tenant.
    event = a.call('event')
    b.refused(HANDLE, 'open', 1, text=a.call('eget', event), why='of an event')
    b.refused(HANDLE, 'eopen', 0, text=handle, why='of memory')
    a.call('free', addr)


def events(a, b):
    word = a.call('alloc', PIECE)
    a.call('fill', word, 0, 1)
    event = a.call('event')
    there = b.call('eopen', 0, text=a.call('eget', event))
    b.call('query', there)
    a.call('block', word, 1)
    a.call('record', event)
    b.refused(NOT_READY, 'query', there, why='of a recording that is not complete')
    b.call('ewait', there)
    b.refused(NOT_READY, 'idle', why='of a stream that waits for the first process')
    a.call('fill', word, 1, 1)
    b.call('synchronize', there)
    check('the waiting stream goes on', waiting.until(lambda: b.do('idle')[1] == 0))
    b.call('record', there)
    a.call('synchronize', event)
    a.call('query', event)
    # A recording behind a copy whose bytes are still on their way.
    data = a.call('alloc', 8 * PIECE)
    seen = b.call('open', 1, text=a.call('get', data))
    for value in range(100, 105):
        a.call('upload', data, value, 8 * WORDS)
        a.call('record', event)
        b.call('synchronize', there)
        b.right(seen, value, 8 * WORDS, 'a copy in the background before a recording')
        a.call('upload', data, value + 50, 8 * WORDS)
        a.call('ewait', event)
        a.call('record', event)
        b.call('ewait', there)
        b.call('record', there)
        a.call('synchronize', event)
        b.right(seen, value + 50, 8 * WORDS, 'and before the recording of the other process')
    b.call('close', seen)
    a.call('free', data)
    b.call('edestroy', there)
    a.call('record', event)
    a.call('synchronize', event)
    a.refused(CONTEXT, 'eopen', 0, text=a.call('eget', event), why='in the exporting process')
    a.call('edestroy', event)
    a.call('free', word)


def pools(a, b):
    check('the attribute has descriptors', a.call('attribute', 119) == 1)
    pool = a.call('pool', 1)
    name = a.call('pexport', pool)
    there = b.call('pimport', len(name) // 2, text=name)
    addr = a.call('palloc', pool, PIECE)
    a.call('fill', addr, 31, WORDS)
    point = a.call('ppoint', addr)
    seen = b.call('popen', there, text=point)
    b.right(seen, 31, WORDS, 'of a pool')
    b.call('fill', seen, 32, WORDS)
    a.right(addr, 32, WORDS, 'of a pool, written by the second process')
    b.refused(INVALID, 'palloc', there, PIECE, why='from an imported pool')
    b.refused(INVALID, 'pset', there, why='to an imported pool')
    b.refused(INVALID, 'pexport', there, why='of an imported pool')
    b.refused(INVALID, 'ppoint', seen, why='of an imported pointer')
    b.refused(INVALID, 'popen', a.call('pdefault'), text=point, why='in a pool that is not imported')
    a.refused(INVALID, 'get', addr, why='of memory of a pool')
    b.call('pfree', seen)
    b.refused(INVALID, 'other', seen, 32, 16, why='of freed memory')
    b.call('free', b.call('popen', there, text=point))
    a.call('pfree', addr)
    other = a.call('pool', 1)
    strange = b.call('pimport', len(name) // 2, text=a.call('pexport', other))
    b.refused(INVALID, 'popen', strange, text=point, why='in another pool')
    b.refused(INVALID, 'pimport', len(name) // 2 - 1, text=name[:-2], why='of a shorter file')
    b.refused(INVALID, 'pimport', len(name) // 2, text='00' * 64, why='of zeros')
    b.refused(INVALID, 'pimport', len(name) // 2, text=name[:18] + '5555' + name[22:], why='with a forged id')
    a.refused(INVALID, 'pexport', a.call('pool', 0), why='of a pool that is not shared')
    a.refused(NOT_SUPPORTED, 'pool', 2, why='with a type of Windows')
    for p, process in ((pool, a), (other, a), (there, b), (strange, b)):
        process.call('pdestroy', p)


def created(a, b):
    handle = a.call('create', PIECE)
    file = a.call('export', handle)
    b.call('release', b.call('import', len(file) // 2, text=file))
    b.refused(INVALID, 'import', len(file) // 2, text=file[:20] + '5555' + file[24:], why='with a forged id')
    b.refused(INVALID, 'import', len(file) // 2 - 4, text=file[:-8], why='of a shorter file')
    a.call('release', handle)

    def ended():  # the release is not waited for
        _, result, again = b.do('import', len(file) // 2, text=file)
        if result == 0:
            b.call('release', again)
        return result == INVALID
    check('import of memory that has ended: refused', waiting.until(ended))


def tenants():
    with tempfile.TemporaryDirectory() as folder:
        cert, key, tokens = (os.path.join(folder, name) for name in ('cert', 'key', 'tokens'))
        subprocess.run([OUTBOARD, 'cert', '--cert', cert, '--key', key], check=True, stdout=subprocess.DEVNULL)
        alice, bob = (subprocess.run([OUTBOARD, 'token', 'create', '--file', tokens, '--name', name], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
                      for name in ('alice', 'bob'))
        with Server(SERVER, '--driver', 'soft', '--tls-cert', cert, '--tls-key', key, '--tokens', tokens, listen='tls://127.0.0.1:0') as server:
            with Process(server, OUTBOARD_TOKEN=alice, OUTBOARD_TLS_CA=cert) as a, Process(server, OUTBOARD_TOKEN=alice, OUTBOARD_TLS_CA=cert) as friend, \
                    Process(server, OUTBOARD_TOKEN=bob, OUTBOARD_TLS_CA=cert) as stranger:
                addr = a.call('alloc', PIECE)
                a.call('fill', addr, 41, WORDS)
                handle, event, pool = a.call('get', addr), a.call('eget', a.call('event')), a.call('pexport', a.call('pool', 1))
                file = a.call('export', a.call('create', PIECE))
                stranger.refused(HANDLE, 'open', 1, text=handle, why='by another tenant')
                stranger.refused(HANDLE, 'eopen', 0, text=event, why='by another tenant')
                stranger.refused(INVALID, 'pimport', len(pool) // 2, text=pool, why='by another tenant')
                stranger.refused(INVALID, 'import', len(file) // 2, text=file, why='by another tenant')
                friend.right(friend.call('open', 1, text=handle), 41, WORDS, 'another process of the same tenant')


def deaths(server):
    """Processes and workers that end in the middle."""
    with Process(server) as b:
        a = Process(server)
        addr, word = a.call('alloc', PIECE), a.call('alloc', PIECE)
        a.call('fill', addr, 51, WORDS)
        a.call('fill', word, 0, 1)
        handle, event = a.call('get', addr), a.call('event')
        there = b.call('open', 1, text=handle)
        waits = b.call('eopen', 0, text=a.call('eget', event))
        a.call('block', word, 1)
        a.call('record', event)
        b.call('ewait', waits)
        b.refused(NOT_READY, 'query', waits, why='before the recording process ends')
        a.kill()
        check('a stream that waits for a killed process goes on', waiting.until(lambda: b.do('idle')[1] == 0))
        b.call('synchronize', waits)
        b.right(there, 51, WORDS, 'memory of a killed process')
        b.call('close', there)
        b.refused(HANDLE, 'open', 1, text=handle, why='of a session that has ended')
        # The worker of the second process waits for the first one's event and is killed.
        with Process(server) as c:
            event = c.call('event')
            waits = b.call('eopen', 0, text=c.call('eget', event))
            word = c.call('alloc', PIECE)
            c.call('fill', word, 0, 1)
            c.call('block', word, 1)
            c.call('record', event)
            b.call('ewait', waits)
            b.kill()
            c.call('fill', word, 1, 1)
            c.call('synchronize', event)
            c.right(word, 1, 1, 'after the death of a process that waited')


def limits():
    """Imported memory is limited like the session's own; exported objects are limited in number."""
    with Server(SERVER, '--driver', 'soft', '--max-memory', '400MiB') as server, Process(server) as a, Process(server) as other, Process(server) as b:
        handles = [process.call('get', process.call('alloc', 64 * MIB)) for process in (a, other) for _ in range(3)]
        opened = [b.do('open', 1, text=handle)[1:] for handle in handles]
        results = [result for result, _ in opened]
        check('imported memory is limited', results[0] == 0 and results[-1] == MEMORY and set(results) == {0, MEMORY}, results)
        for result, addr in opened:
            if result == 0:
                b.call('close', addr)
        addr = b.call('open', 1, text=handles[-1])
        check('opening again takes nothing', {b.do('open', 1, text=handles[-1])[1:] for _ in range(12)} == {(0, addr)})
        ended = set()
        for _ in range(2100):  # what has ended does not count
            event = a.call('event')
            ended.add(a.do('eget', event)[1])
            a.call('edestroy', event)
        check('events end with their exports', ended == {0}, ended)
        small = [a.call('event') for _ in range(4)]
        check('events have handles of their own', len({a.call('eget', event) for event in small}) == 4)
        many = [a.do('eget', small[0])[1] for _ in range(2100)]
        check('exported objects are limited', many[0] == 0 and many[-1] == MEMORY, (many[0], many[-1]))
        with Process(server) as c:
            event = c.call('event')
            check('and other sessions are not concerned', bool(c.call('eget', event)))


def broken():
    """Connections break while memory is exported, opened and closed."""
    with Server(SERVER, '--driver', 'soft') as server:
        proxy = cutter.Proxy('tcp:', server.url)
        over = threading.Event()

        def cut():
            while not over.wait(0.01):
                proxy.cut_all('rst', ('new', 'data'))

        with Process(proxy.url) as a, Process(proxy.url) as b:
            threading.Thread(target=cut, daemon=True).start()
            for i in range(60):
                addr = a.call('alloc', PIECE)
                a.call('fill', addr, 60 + i, 64)
                there = b.call('open', 1, text=a.call('get', addr))
                b.right(there, 60 + i, 64, f'round {i}')
                event = b.call('eopen', 0, text=a.call('eget', a.call('event')))
                a.call('fill', addr, 90 + i, 64)
                b.right(there, 90 + i, 64, f'round {i}, written again')
                b.call('record', event)
                b.call('close', there)
                b.call('edestroy', event)
                a.call('free', addr)
            over.set()
        check('connections have been cut', proxy.total() > 5, proxy.made)


with Server(SERVER, '--driver', 'soft') as shared:
    with Process(shared) as one, Process(shared) as two:
        for part in memory, refused_memory, events, pools, created:
            print(f'-- {part.__name__}')
            part(one, two)
    deaths(shared)
for part in tenants, limits, broken:
    print(f'-- {part.__name__}')
    part()
finish()
