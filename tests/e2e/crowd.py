# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Many sessions at once, some of which are lost: the others must not be affected. Many connections
that send nothing or little: real clients must still get a session.

    crowd.py OUTBOARD SERVER RESUME_PROGRAM FAULT_PROGRAM SESSIONS CONNECTIONS
"""
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.append(sys.path[0] + '/../lib')
import waiting
from outboard_test import Server, bad, check, gone_within, resident

OUTBOARD, SERVER, PROGRAM, FAULT = sys.argv[1:5]
SESSIONS, CONNECTIONS = int(sys.argv[5]), int(sys.argv[6])
TIMEOUT = 240


class Run:
    """A program with its own session, monitored to its end."""

    def __init__(self, url, *command):
        self.process = subprocess.Popen([OUTBOARD, 'run', '--server', url, '--', *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.out = self.err = ''
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def watch(self):
        try:
            self.out, self.err = self.process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            self.err = 'it hangs'

    def wait(self):
        self.thread.join()
        return self.process.returncode, self.out, self.err


def faults(folder):
    """One session's kernel faults. Two others that run at the same time must give the same results
    as alone."""
    server = Server(SERVER, '--driver', 'soft', listen=f'unix:{folder}/f')
    alone = Run(server.url, PROGRAM, '2', '4', '300000').wait()
    others = [Run(server.url, PROGRAM, '2', '4', '300000') for _ in range(2)]
    faulty = [Run(server.url, FAULT).wait() for _ in range(3)]
    check('a kernel that faults is reported', all(run[0] == 0 and run[1] for run in faulty), faulty)
    check('two sessions beside three that fault', all(run.wait()[:2] == alone[:2] for run in others) and alone[0] == 0, (alone, [run.wait() for run in others]))
    check('the server stops', server.stop())


def killed(folder):
    """Kills workers at random while many sessions run, and then the server."""
    dice = random.Random(5)
    server = Server(SERVER, '--driver', 'soft', '--max-sessions', str(SESSIONS + 2), listen=f'unix:{folder}/k')
    alone = Run(server.url, PROGRAM, '1', '6', '100000').wait()
    check('the program alone', alone[0] == 0, alone)
    runs = [Run(server.url, PROGRAM, '1', '6', '100000') for _ in range(SESSIONS)]
    victims = set()
    # A thread watches each run; each must end.
    while len(victims) < SESSIONS // 4 and any(run.thread.is_alive() for run in runs):
        alive = [pid for pid in server.workers() if pid not in victims]
        if alive:
            victim = dice.choice(alive)
            victims.add(victim)
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it has ended by itself in the meantime
        waiting.let_pass(dice.uniform(0.005, 0.05), 'kills fall on other places of the work; none must change the result')
    results = [run.wait() for run in runs]
    right = sum(run[:2] == alone[:2] for run in results)
    lost = sum(run[0] != 0 and 'outboard: error' in run[2] for run in results)
    check(f'{len(victims)} of {SESSIONS} workers killed: {right} sessions give what one alone gives, {lost} end with an error, none does anything else',
          right + lost == SESSIONS and 0 < lost <= len(victims), [run for run in results if run[:2] != alone[:2] and 'outboard: error' not in run[2]][:2])
    after = Run(server.url, PROGRAM, '1', '6', '100000').wait()
    check('the server serves on', after[:2] == alone[:2], after)

    runs = [Run(server.url, PROGRAM, '1', '60', '100000') for _ in range(SESSIONS)]
    waiting.until(lambda: len(server.workers()) >= SESSIONS // 2)
    everyone = server.children()
    server.process.kill()
    server.process.wait()
    began = time.monotonic()
    results = [run.wait() for run in runs]
    took = time.monotonic() - began
    ended = sum(run[0] != 0 for run in results)
    check(f'server killed: {SESSIONS} programs end after {took:.1f} s, {ended} with an error, the others had their result', took < TIMEOUT and ended and
          all(run[0] == 0 or 'outboard: error' in run[2] for run in results), [run for run in results if run[0] and 'outboard: error' not in run[2]][:2])
    check('server killed: no worker is left', gone_within(everyone, waiting.LONG), everyone)


def crowd():
    """More connections than the server keeps. Most send nothing, some send one byte."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    many = min(CONNECTIONS, hard - 200)
    server = Server(SERVER, '--driver', 'null', '--hello-timeout', '3', listen='tcp://127.0.0.1:0')
    host, port = server.url.rsplit('/', 1)[1].split(':')
    before = resident(server.process.pid)
    held, refused = [], 0
    took = []
    for i in range(many):
        one = socket.socket()
        one.settimeout(waiting.LONG)
        try:
            one.connect((host, int(port)))
            if i % 50 == 0:
                one.sendall(b'\x4f')  # the first byte of a preface, never the second
            held.append(one)
        except OSError:
            refused += 1
            one.close()
        if i % (many // 5) == many // 10:
            began = time.monotonic()
            done = subprocess.run([OUTBOARD, 'check', '--server', server.url], capture_output=True, text=True, timeout=waiting.LONG)
            took.append(time.monotonic() - began)
            if done.returncode:
                bad.append('check')
                print(done.stdout, done.stderr)
    check(f'{len(took)} clients get in among {many} connections that say nothing ({refused} refused), after at most {max(took):.2f} s', len(took) >= 4 and max(took) < waiting.LONG, took)
    peak = resident(server.process.pid)
    check(f'memory grows by {(peak - before) / 1e6:.1f} MB', peak - before < 32 << 20)
    end, closed = time.monotonic() + waiting.LONG, 0
    for one in held:
        try:
            one.settimeout(max(0.01, end - time.monotonic()))
            while one.recv(4096):
                pass
            closed += 1
        except ConnectionError:
            closed += 1
        except OSError:
            pass
        one.close()
    check('all of them are hung up on when the time to say hello is over', closed == len(held), (closed, len(held)))
    done = subprocess.run([OUTBOARD, 'check', '--server', server.url], capture_output=True, text=True, timeout=waiting.LONG)
    check('afterwards all is as before', done.returncode == 0, done.stderr)
    check('the server stops', server.stop())


def main():
    with tempfile.TemporaryDirectory() as folder:
        faults(folder)
        killed(folder)
    crowd()
    print(f'{len(bad)} wrong')
    return 1 if bad else 0


sys.exit(main())
