# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A session's other side goes away: the program gets a CUDA error at once and on every later call, the server and other sessions go on, nothing is left over.

    lost.py OUTBOARD SERVER INIT_PROGRAM DRIVER
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

OUTBOARD, SERVER, PROGRAM, DRIVER = sys.argv[1:5]
UNAVAILABLE = '46'
bad = []


def check(what, condition, detail=''):
    print(f'{"ok  " if condition else "FAIL"} {what}{"" if condition else ": " + str(detail)}', flush=True)
    if not condition:
        bad.append(what)


class Server:
    def __init__(self, url):
        self.process = subprocess.Popen([SERVER, '--listen', url, '--driver', DRIVER], stderr=subprocess.PIPE, text=True, env=dict(os.environ, OUTBOARD_LOG='info'))
        self.lines, self.url = [], None
        ready = threading.Event()

        def read():
            for line in self.process.stderr:
                self.lines.append(line)
                found = re.search(r'listening on (\S+)', line)
                if found:
                    self.url = found.group(1)
                    ready.set()
        threading.Thread(target=read, daemon=True).start()
        if not ready.wait(10):
            raise SystemExit('the server did not start: ' + ''.join(self.lines))

    def children(self):
        return descendants(self.process.pid)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            bad.append('the server did not stop on SIGTERM')


def descendants(pid):
    found = []
    for status in pathlib.Path('/proc').glob('[0-9]*/stat'):
        try:
            fields = status.read_text().rsplit(')', 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != 'Z':
            found.append(int(status.parent.name))
    return found


class Session:
    """A program that has made one call and waits for a line before it makes the next."""

    def __init__(self, server, **env):
        before = set(server.children())
        self.program = subprocess.Popen([OUTBOARD, 'run', '--server', server.url, '--', PROGRAM, 'wait'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=dict(os.environ, **env))
        self.first = [self.program.stdout.readline().strip() for _ in range(2)]
        self.before = before

    def go_on(self):
        began = time.monotonic()
        out, err = self.program.communicate('\n', timeout=30)
        return out.split(), err, time.monotonic() - began


def worker_of(server):
    """The worker that serves the only session: the log names it."""
    for line in reversed(server.lines):
        found = re.search(r'starts on worker (\d+)', line)
        if found:
            return int(found.group(1))
    return None


def gone_within(pids, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(pathlib.Path(f'/proc/{p}/exe').exists() for p in pids):
            return True
        time.sleep(0.02)
    return False


def main():
    with tempfile.TemporaryDirectory() as folder:
        server = Server(f'unix:{folder}/s')
        other = Session(server)
        time.sleep(0.3)
        check('two sessions start', other.first == ['0', '0'], other.first)

        session = Session(server)
        time.sleep(0.3)
        worker = worker_of(server)
        os.kill(worker, signal.SIGKILL)
        time.sleep(0.2)
        results, err, took = session.go_on()
        check('worker killed: both later calls fail', session.first == ['0', '0'] and results == [UNAVAILABLE] * 2, (session.first, results, err))
        check('worker killed: at once', took < 1, took)
        check('worker killed: the message says so', 'session is lost' in err, err)

        session = Session(server, OUTBOARD_DEAD='2')
        time.sleep(0.3)
        worker = worker_of(server)
        os.kill(worker, signal.SIGSTOP)
        results, err, took = session.go_on()
        check('worker frozen: both later calls fail', results == [UNAVAILABLE] * 2, (results, err))
        check('worker frozen: within the time-out', 1 < took < 6, took)
        os.kill(worker, signal.SIGCONT)
        check('worker frozen, then thawed: it ends', gone_within([worker], 3))

        session = Session(server)
        time.sleep(0.3)
        worker = worker_of(server)
        session.program.kill()
        check('program killed: its worker is gone within a second', gone_within([worker], 1))
        session.program.communicate()

        results, err, _ = other.go_on()
        check('the other session never noticed', results == ['0', '0'] and err == '', (results, err))

        session = Session(server)
        everyone = server.children()
        server.process.kill()
        time.sleep(0.2)
        results, err, took = session.go_on()
        check('server killed: both later calls fail at once', results == [UNAVAILABLE] * 2 and took < 2, (results, took, err))
        check('server killed: no worker is left', gone_within(everyone, 1.5), everyone)
        server.process.wait()

        server = Server(f'unix:{folder}/s')
        session = Session(server)
        check('a server starts on the socket file of a killed one', session.first == ['0', '0'], session.first)
        session.go_on()
        everyone = server.children()
        server.stop()
        check('SIGTERM: no worker, no socket file left', gone_within(everyone, 1) and not os.path.exists(f'{folder}/s'))
    print(f'{len(bad)} wrong')
    return 1 if bad else 0


sys.exit(main())
