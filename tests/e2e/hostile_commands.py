# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The outboard command and a hostile server. Runs every verb that queries a server over a
connection on which a proxy changes the server's data (hostile.py), and with servers that send
nothing, send without end, or send wrong counts. A command must end within its time-outs with an
exit code, not by a signal, and must print no terminal control sequences.

    hostile_commands.py OUTBOARD SERVER SEEDS [FIRST_SEED]
"""
import concurrent.futures
import json
import os
import struct
import subprocess
import sys
import time

sys.path.append(sys.path[0] + '/../lib')
import waiting
from frames import ACK, REPLIES, Frame, replies_into, replies_of
from hostile import STEER, Hostile
from outboard_test import Server, bad, check
from listening import Listener, end

OUTBOARD, SERVER = sys.argv[1:3]
SEEDS, FIRST = int(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 1
VERBS = (('check',), ('info',), ('top', '--once'), ('top', '--once', '--json'), ('bench', 'latency', '--rounds', '1', '--samples', '100'),
         ('bench', 'launch', '--rounds', '1', '--json'))
ENV = dict(os.environ, OUTBOARD_TIMEOUT='2', OUTBOARD_GRACE='2', OUTBOARD_DEAD='2')
# bytes of the numbers in a reply with times (protocol/spec/session.api)
TIMES = 250 * 8
AT_ONCE = 4


def run(url, verb):
    """Returns what is wrong with the command's end, or None, and its output."""
    began = time.monotonic()
    try:
        done = subprocess.run([OUTBOARD, *verb, '--server', url], capture_output=True, stdin=subprocess.DEVNULL, env=ENV, timeout=waiting.LONG)
    except subprocess.TimeoutExpired:
        return 'a hang', ''
    said = (done.stdout + done.stderr).decode('utf-8', 'surrogateescape')
    if done.returncode < 0 or done.returncode > 3:
        return f'it ended with {done.returncode}', said
    if 'Sanitizer' in said or 'runtime error' in said:
        return 'a sanitizer reports', said
    if STEER.search(said.replace('\n', '').replace('\t', '')):
        return 'control characters', said
    if done.returncode and not said.strip():
        return 'it failed without a word', said
    if done.returncode == 0 and '--json' in verb:
        json.loads(done.stdout)
    return (f'it took {time.monotonic() - began:.0f} s' if time.monotonic() - began > waiting.AT_ONCE else None), said


def changed(server_url, seed):
    hostile = Hostile(server_url, seed, False)
    verb = VERBS[seed % len(VERBS)]
    wrong, said = run(hostile.url, verb)
    hostile.close()
    return verb, wrong, hostile.log, said


class Wild(Hostile):
    """Changes the length of every list of times to more than two thousand million."""

    def change(self, frame, state, ends):
        if frame.type == REPLIES and not frame.flags:
            replies = replies_of(frame)
            for reply in replies:
                if TIMES <= len(reply.data) < TIMES + 100: # the count follows the numbers
                    reply.data = reply.data[:TIMES] + struct.pack('<I', 0x7fffffff) + reply.data[TIMES + 4:]
                    self.log.append('times')
            replies_into(frame, replies)
        return [frame.bytes()]


class Alone(Listener):
    """A fake server: `serve` gets each connection after the client's first bytes were read."""

    def __init__(self, serve):
        super().__init__(lambda connection: connection.recv(65536) and serve(connection))
        self.url = 'tcp:' + self.address


class Flood(Hostile):
    """Sends a correct welcome, then acknowledgements without end and no reply."""

    def down(self, server, client, _state):
        more = Frame(payload=b'', type=ACK).bytes() * 1000
        try:
            client.sendall(Frame.read(server).bytes())
            while True:
                client.sendall(more)
        except (OSError, EOFError):
            pass
        end(client)


def flood(connection):
    while True:
        connection.sendall(Frame(payload=b'', type=ACK).bytes() * 1000)


def main():
    server = Server(SERVER, '--driver', 'null', listen='tcp://127.0.0.1:0')
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for seed, (verb, wrong, log, said) in zip(range(FIRST, FIRST + SEEDS), pool.map(lambda n: changed(server.url, n), range(FIRST, FIRST + SEEDS))):
            if wrong:
                check(f'seed {seed}: {" ".join(verb)}', False, f'{wrong}; {log}; {said[-600:]!r}')
    check(f'{SEEDS} commands end well, whatever the server says', not bad)
    # Only the first three commands query the server themselves. bench uses the client library, for
    # which a server that sends acknowledgements but no reply is busy computing.
    for name, verbs, peer in (('says nothing', VERBS, Alone(lambda c: None)), ('never stops talking', VERBS, Alone(flood)),
                              ('never answers a call', VERBS[:3], Flood(server.url, 1, False))):
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for verb, (wrong, said) in zip(verbs, pool.map(lambda v: run(peer.url, v), verbs)):
                check(f'{" ".join(verb)}: a server that {name}', wrong is None, f'{wrong}; {said[-600:]!r}')
        peer.close()
    wild = Wild(server.url, 1, False)
    wrong, said = run(wild.url, VERBS[4])
    check('bench latency: a wild count of times', wrong is None and wild.log and 'times' in said, f'{wrong}; {wild.log}; {said[-600:]!r}')
    wild.close()
    check('the server lives', server.process.poll() is None)
    server.stop()
    sys.exit(bool(bad))


main()
