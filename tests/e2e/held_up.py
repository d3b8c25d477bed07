# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A server that is held up for longer than its time-out for a hello: what clients sent meanwhile was sent in
time, so no one is turned away.

    held_up.py OUTBOARD SERVER INIT_PROGRAM
"""
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.append(sys.path[0] + '/../lib')
import waiting
from listening import Listener, join
from outboard_test import ENV, Server, check, finish

OUTBOARD, SERVER, PROGRAM = sys.argv[1:]
HELLO = 2  # seconds


class Slow:
    """Connects to the server at once, and passes the client's bytes on when it is told to."""

    def __init__(self, url):
        host, port = url.removeprefix('tcp://').split(':')
        self.server = (host, int(port))
        self.connected, self.go = threading.Event(), threading.Event()
        self.listener = Listener(self.serve)
        self.url = 'tcp:' + self.listener.address

    def serve(self, near):
        far = socket.create_connection(self.server)
        self.connected.set()
        self.go.wait(waiting.LONG)
        join(near, far)


def start(url, token):
    # COMPILERS: the command itself asks the server nothing.
    return subprocess.Popen([OUTBOARD, 'run', '--server', url, '--', PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**ENV, 'OUTBOARD_TOKEN': token, 'OUTBOARD_COMPILERS': '0'})


with tempfile.TemporaryDirectory() as folder:
    tokens = os.path.join(folder, 'tokens')
    token = subprocess.run([OUTBOARD, 'token', 'create', '--file', tokens, '--name', 'test'], capture_output=True, text=True, check=True).stdout.strip()
    with Server(SERVER, '--driver', 'soft', '--tokens', tokens, '--hello-timeout', str(HELLO)) as server:
        check('a program runs', start(server.url, token).communicate(timeout=waiting.LONG)[0] == '0\n0\n')
        slow = Slow(server.url)
        second = start(slow.url, token)
        check('the second one is connected', slow.connected.wait(waiting.LONG))
        os.kill(server.process.pid, signal.SIGSTOP)
        first = start(server.url, token)
        waiting.let_pass(1, 'the admission process asks the supervisor for the token file meanwhile, and waits')
        slow.go.set()
        waiting.let_pass(HELLO + 4, 'the time for a hello ends meanwhile, and what was once the time for an answer of the supervisor')
        os.kill(server.process.pid, signal.SIGCONT)
        for name, program in ('the one whose token is examined', first), ('the one that waited behind it', second):
            out, err = program.communicate(timeout=waiting.LONG)
            check(f'{name} is served', (out, program.returncode) == ('0\n0\n', 0), (out, err, program.returncode))
finish()
