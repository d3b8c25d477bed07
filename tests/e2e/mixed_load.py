#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Mixed load on one server: programs over every transport, connections that are cut, clients and
workers that are killed, hostile peers.

    mixed_load.py --build BUILD [--programs DIR] [--runs 60 | --minutes 60] [--slots 4] [--seed 1]

Every program must give its expected output. The exceptions are counted: a run whose client this
test killed, and for each worker that it killed at most one run, that worker's, which must end
with an error that names the cause. At the end the server's memory and descriptors are compared
with those at the start, and no process, no file in the server's folders and no object in
/dev/shm may remain.
"""
import argparse
import collections
import contextlib
import os
import pathlib
import random
import re
import signal
import socket
import ssl
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / 'programs')]
sys.path.append(sys.path[0] + '/../lib')
import cutter  # noqa: E402
import run as programs  # noqa: E402
from outboard_test import children, gone_within, needs, resident  # noqa: E402

RUN_TIMEOUT = 300        # seconds; a program needs a few at most
HOSTILE_ADDRESS = '127.0.0.66'
HOSTILE_HELD_MAX = 64    # connections that the hostile peers keep open at a time
HOSTILE_PAUSE = 0.02     # seconds between two of them: at most 50 a second
# One of this many runs kills its client, and one of this many a worker, within KILL_WITHIN seconds.
KILL_EVERY = (4, 9)
KILL_WITHIN = 0.5
LONG_SHARE = 0.2         # the fraction of the other runs that use LongProgram
# Arguments of LongProgram, which is used for runs with a kill: threads, rounds, bytes of a large
# copy.
LONG = ('2', '80', '300000')
SAMPLE_EVERY = 2.0       # seconds
# Bytes by which the server's memory may grow between the second and the last tenth of a long run.
GROWTH_MAX = 6 << 20
needs('resume')
PREFACE = struct.pack('<IHBBQ', 0x4452424F, 2, 1, 0, 0)
JOIN = struct.pack('<IHBB', 0x4452424F, 1, 2, 0)
WAYS = ('tcp', 'unix', 'shm', 'tls', 'cut')


class Server:
    """One server that listens on every transport and requires a token. The live sessions are read
    from its log."""

    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        tool = os.path.join(build, 'tools', 'outboard')
        cert, key, tokens = (os.path.join(folder, name) for name in ('cert.pem', 'key.pem', 'tokens'))
        subprocess.run([tool, 'cert', '--cert', cert, '--key', key], check=True, stdout=subprocess.DEVNULL)
        made = subprocess.run([tool, 'token', 'create', '--file', tokens, '--name', 'load'], check=True, stdout=subprocess.PIPE, text=True)
        self.env = dict(os.environ, LC_ALL='C', OUTBOARD_TOKEN=made.stdout.strip(), OUTBOARD_TLS_CA=cert, OUTBOARD_TIMEOUT='60')
        listen = ['tcp://127.0.0.1:0', 'tls://127.0.0.1:0', f'unix:{folder}/unix', f'shm:{folder}/shm']
        options = ['--driver', 'soft', '--tls-cert', cert, '--tls-key', key, '--tokens', tokens, '--audit', os.path.join(folder, 'audit'), '--grace', '60']
        self.process = subprocess.Popen([os.path.join(build, 'server', 'outboard-server'), *options, *(word for url in listen for word in ('--listen', url))],
                                        stderr=subprocess.PIPE, text=True, env=dict(os.environ, OUTBOARD_LOG='info'))
        self.urls, self.sessions, self.groups, self.tail = {}, {}, {}, collections.deque(maxlen=200)
        self.lock, ready = threading.Lock(), threading.Event()
        threading.Thread(target=self.read, args=(len(listen), ready), daemon=True).start()
        if not ready.wait(60):
            self.process.kill()
            raise SystemExit('the server did not start: ' + ''.join(self.tail))

    def read(self, wanted, ready):
        for line in self.process.stderr:
            self.tail.append(line)
            if found := re.search(r'listening on ((\w+):\S+)', line):
                self.urls[found.group(2)] = found.group(1)
                if len(self.urls) == wanted:
                    ready.set()
            elif found := re.search(r'session (\w+) starts on worker (\d+)', line):
                with self.lock:
                    self.sessions[found.group(1)] = int(found.group(2))
            elif found := re.search(r'session (\w+): .* \(process (\d+), client', line):
                with self.lock, contextlib.suppress(ProcessLookupError):
                    self.groups[found.group(1)] = os.getpgid(int(found.group(2)))
            elif found := re.search(r'session (\w+) ended', line):
                with self.lock:
                    self.sessions.pop(found.group(1), None)
                    self.groups.pop(found.group(1), None)

    def victim(self, dice):
        """Returns the worker of a live session and, if known yet, its client's process group; or
        None."""
        with self.lock:
            session = dice.choice(list(self.sessions)) if self.sessions else None
            return (self.sessions[session], self.groups.get(session)) if session else None

    def own(self):
        """The server's process and those of its children that serve no session."""
        with self.lock:
            busy = set(self.sessions.values())
        return [self.process.pid, *(pid for pid in children(self.process.pid) if pid not in busy)]


class Tally:
    """Results of the runs; written by all slots."""

    def __init__(self):
        self.lock = threading.Lock()
        self.count = collections.Counter()
        self.wrong = []
        # For each killed worker whose run has not been found yet: the client's process group, or
        # None.
        self.kills = []

    def add(self, what, n=1):
        with self.lock:
            self.count[what] += n

    def killed(self, group):
        with self.lock:
            self.kills.append(group)
            self.count['workers killed'] += 1

    def kill_claim(self, group):
        """Whether a worker of this process group was killed, or one without a known client."""
        with self.lock:
            for one in (group, None):
                if one in self.kills:
                    self.kills.remove(one)
                    return True
            return False

    def complain(self, text):
        with self.lock:
            self.count['wrong'] += 1
            self.wrong.append(text)
        print('FAIL ' + text, flush=True)


class LongProgram:
    """tests/e2e/resume.c: a program with known results, checked like a program of programs.list."""
    name = binary = 'e2e_resume'
    exit, sorted, stderr = 0, True, None

    def __init__(self, build, folder):
        self.command = [os.path.join(build, 'tests', 'e2e', 'e2e_resume'), *LONG]
        alone = subprocess.run([os.path.join(build, 'tools', 'outboard'), 'run', '--direct', '--', *self.command], capture_output=True, text=True, check=True)
        self.path = pathlib.Path(folder) / 'expected'
        self.path.write_text(''.join(line + '\n' for line in sorted(alone.stdout.splitlines())))

    def expected_path(self):
        return str(self.path)


class Load:
    """Slots that run programs one after another until the number of runs is reached."""

    def __init__(self, server, proxy, arguments, tally):
        self.server, self.proxy, self.arguments, self.tally = server, proxy, arguments, tally
        self.programs = [p for p in programs.read_list() if not p.alone and os.path.exists(self.path(p)) and os.path.exists(p.expected_path())]
        if not self.programs:
            raise SystemExit(f'no test programs in {arguments.programs}')
        self.long = LongProgram(arguments.build, server.folder)
        self.end = time.monotonic() + arguments.minutes * 60 if arguments.minutes else None
        self.lock, self.begun = threading.Lock(), 0

    def path(self, program):
        return os.path.join(self.arguments.programs, program.binary)

    def next(self):
        """Returns the number of the next run; None: all have been started."""
        with self.lock:
            if time.monotonic() > self.end if self.end else self.begun >= self.arguments.runs:
                return None
            self.begun += 1
            return self.begun

    def slot(self):
        while (number := self.next()) is not None:
            dice = random.Random(self.arguments.seed * 1_000_003 + number)
            victim = 'client' if number % KILL_EVERY[0] == 0 else 'worker' if number % KILL_EVERY[1] == 0 else None
            program = self.long if victim or dice.random() < LONG_SHARE else dice.choice(self.programs)
            self.one(program, WAYS[number % len(WAYS)], victim, dice)

    def one(self, program, way, victim, dice):
        url = self.proxy.url if way == 'cut' else self.server.urls[way]
        command = [os.path.join(self.arguments.build, 'tools', 'outboard'), 'run', '--server', url, '--', *(program.command if program is self.long else [self.path(program)])]
        timer = None
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.server.env, start_new_session=True)
        if victim:
            timer = threading.Timer(dice.uniform(0, KILL_WITHIN), self.kill_client if victim == 'client' else self.kill_worker, (process, dice))
            timer.start()
        try:
            out, err = process.communicate(timeout=RUN_TIMEOUT)
            code = process.returncode
        except subprocess.TimeoutExpired:
            programs.stop(process)
            out, err = process.communicate()
            code = None
        if timer:
            timer.cancel()
            timer.join()
        self.judge(program, way, victim, process.pid, code, out.decode(errors='replace'), err.decode(errors='replace'))

    def kill_client(self, process, _):
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def kill_worker(self, _, dice):
        if victim := self.server.victim(dice):
            worker, group = victim
            # Before the kill, because the end of the run may be judged first otherwise.
            self.tally.killed(group)
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)

    def judge(self, program, way, victim, group, code, out, err):
        lines = sorted(out.splitlines()) if program.sorted else out.splitlines()
        self.tally.add('runs')
        if victim == 'client' and code == -signal.SIGKILL:
            self.tally.add('clients killed')
        elif code is not None and code != program.exit and 'outboard: error: ' in err and self.tally.kill_claim(group):
            self.tally.add('sessions lost')
        elif complaints := programs.complaints_of(program, code, lines, err, RUN_TIMEOUT):
            self.tally.complain(f'{program.binary} over {way}: ' + '; '.join(complaints))
        else:
            self.tally.add('right over ' + way)


class Hostile:
    """Peers that have no token: silence, parts of prefaces, garbage, messages with wrong contents,
    joins of sessions that are not theirs."""

    def __init__(self, server, seed, tally):
        self.server, self.dice, self.tally = server, random.Random(seed), tally
        self.held, self.stopped = collections.deque(), threading.Event()
        self.thread = threading.Thread(target=self.loop)
        self.thread.start()

    def connect(self):
        """Connects to one of the network addresses from a separate source address."""
        host, port = self.server.urls[self.dice.choice(('tcp', 'tls'))].rsplit('/', 1)[1].split(':')
        return socket.create_connection((host, int(port)), 5, (HOSTILE_ADDRESS, 0))

    def message(self, body):
        size = len(body) + -len(body) % 8
        frame = struct.pack('<IBBHIIQQQII', 0x4452424F, 1, 4, 0, size, 0, 0, 0, 0, len(body), 0) + body.ljust(size, b'\0')
        for _ in range(self.dice.choice((0, 1, 3))):
            at = self.dice.randrange(len(frame))
            frame = frame[:at] + bytes([self.dice.randrange(256)]) + frame[at + 1:]
        return frame

    def attack(self):
        kind = self.dice.randrange(7)
        link = self.connect()
        self.held.append(link)
        if kind == 1:
            link.sendall(PREFACE[:self.dice.randrange(1, 16)])
        elif kind == 2:
            link.sendall(self.dice.randbytes(self.dice.randrange(1, 5000)))
        elif kind == 3:
            link.sendall(PREFACE)
        elif kind == 4:
            link.sendall(PREFACE + self.message(b'\x82\xa4type\x01\xa5token\xd9\x20' + self.dice.randbytes(32)))
        elif kind == 5:
            link.sendall(JOIN + struct.pack('<Q', self.dice.getrandbits(64)) + self.message(b'\x82\xa4type\x04\xa6secret\xc4\x10' + self.dice.randbytes(16)))
        elif kind == 6:
            link.sendall(PREFACE)
            context = ssl._create_unverified_context()
            with contextlib.suppress(OSError, ValueError):
                link.settimeout(2)
                self.held[-1] = context.wrap_socket(link)
        self.tally.add('hostile connections')

    def loop(self):
        while not self.stopped.wait(HOSTILE_PAUSE):
            try:
                self.attack()
            except OSError:
                self.tally.add('hostile connections refused')
            while len(self.held) > HOSTILE_HELD_MAX:
                self.held.popleft().close()
        while self.held:
            self.held.popleft().close()

    def stop(self):
        self.stopped.set()
        self.thread.join()


class Samples:
    """Memory and descriptors of the server's own processes, over time."""

    def __init__(self, server):
        self.server, self.rows, self.stopped = server, [], threading.Event()
        self.thread = threading.Thread(target=self.loop)
        self.thread.start()

    def loop(self):
        while not self.stopped.wait(SAMPLE_EVERY):
            with contextlib.suppress(OSError):
                pid = self.server.process.pid
                self.rows.append((resident(pid), len(os.listdir(f'/proc/{pid}/fd')), len(self.server.own())))

    def stop(self):
        self.stopped.set()
        self.thread.join()

    def growth(self):
        """Returns the difference in bytes between the medians of the second and the last tenth;
        None: too few samples."""
        tenth = len(self.rows) // 10
        if tenth < 5:
            return None
        memory = [row[0] for row in self.rows]
        return statistics.median(memory[-tenth:]) - statistics.median(memory[tenth:2 * tenth])


def left_over(folder, shm_before):
    """Returns files that a stopped server must have removed."""
    known = {'cert.pem', 'key.pem', 'tokens', 'audit', 'expected'}
    files = [str(path) for path in pathlib.Path(folder).iterdir() if path.name not in known and not path.name.startswith('audit')]
    return files + sorted(set(os.listdir('/dev/shm')) - shm_before)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', required=True, type=os.path.abspath)
    parser.add_argument('--programs', type=os.path.abspath, help='folder of the test programs, if not the build\'s')
    parser.add_argument('--runs', type=int, default=60)
    parser.add_argument('--minutes', type=float, default=0, help='as long as this, instead of a number of runs')
    parser.add_argument('--slots', type=int, default=(os.cpu_count() or 2) + 1, help='programs at a time')
    parser.add_argument('--seed', type=int, default=1)
    arguments = parser.parse_args()
    arguments.programs = arguments.programs or os.path.join(arguments.build, 'tests', 'programs')
    tally, shm_before, began = Tally(), set(os.listdir('/dev/shm')), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(arguments.build, folder)
        proxy = cutter.Proxy('tcp:', server.urls['tcp'], cuts=1 << 40, mean=1 << 20, seed=arguments.seed)
        load = Load(server, proxy, arguments, tally)
        hostile, samples = Hostile(server, arguments.seed, tally), Samples(server)
        slots = [threading.Thread(target=load.slot) for _ in range(arguments.slots)]
        for thread in slots:
            thread.start()
        for thread in slots:
            thread.join()
        hostile.stop()
        samples.stop()
        cuts = proxy.total()
        proxy.close()
        everyone = children(server.process.pid)
        server.process.terminate()
        try:
            server.process.wait(30)
        except subprocess.TimeoutExpired:
            server.process.kill()
            tally.complain('the server did not stop within 30 s of SIGTERM:\n' + ''.join(server.tail))
        if not gone_within(everyone, 10):
            tally.complain(f'processes are left: {everyone}')
        if rest := left_over(folder, shm_before):
            tally.complain(f'files are left: {rest}')
    count = tally.count
    growth = samples.growth()
    if growth is not None and growth > GROWTH_MAX:
        tally.complain(f'the server grew by {growth / 1e6:.1f} MB')
    print(f'{time.monotonic() - began:.0f} s: ' + ', '.join(f'{value} {name}' for name, value in sorted(count.items())) + f', {cuts} connections cut')
    if samples.rows:
        print(f'server: {samples.rows[0][0] / 1e6:.1f} MB at first, {samples.rows[-1][0] / 1e6:.1f} MB at last, '
              f'descriptors {samples.rows[0][1]} and {samples.rows[-1][1]}' + (f', growth {growth / 1e6:.2f} MB' if growth is not None else ''))
    print(f'{count["wrong"]} wrong')
    return 1 if count['wrong'] else 0


if __name__ == '__main__':
    sys.exit(main())
