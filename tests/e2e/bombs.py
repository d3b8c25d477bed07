# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Programs that make the server allocate more and more of one kind of resource. The call that
exceeds the budget must be refused or must wait. The session must continue, another session must
not be affected, and the worker's memory, threads and descriptors must stay within the budget of
host memory.

    bombs.py OUTBOARD SERVER BOMBS_PROGRAM
"""
import contextlib
import os
import pathlib
import re
import subprocess
import sys
import threading

sys.path.append(sys.path[0] + '/../lib')
import waiting
from outboard_test import ENV, Server, check, finish

OUTBOARD, SERVER, PROGRAM = sys.argv[1:4]
BUDGET_MIB, DEVICE_MIB, OUTPUT_MIB = 128, 64, 64
# A sanitizer's runtime keeps freed memory for a time and adds red zones to allocations.
TIMES = 3 if 'ASAN_OPTIONS' in os.environ else 1
# How each bomb ends: CUDA_ERROR_OUT_OF_MEMORY, or 0 where the client has to wait or excess output
# is dropped.
REFUSED = {'launches': 2, 'streams': 2, 'events': 2, 'contexts': 2, 'images': 0, 'prints': 0, 'uploads': 0, 'copies': 0, 'threads': 0}


def status(pid):
    return dict(re.findall(r'^(\w+):\s+(\d+)', pathlib.Path(f'/proc/{pid}/status').read_text(), re.M))


def files(pid):
    """Returns the number of descriptors, and the MiB of the files that store the output."""
    found, total = set(), 0
    with contextlib.suppress(FileNotFoundError):
        for fd in os.scandir(f'/proc/{pid}/fd'):
            with contextlib.suppress(FileNotFoundError):
                st = os.stat(fd.path)
                if os.readlink(fd.path).startswith(('/memfd:stdout', '/memfd:stderr')) and st.st_ino not in found:
                    total += st.st_blocks * 512
                    found.add(st.st_ino)
    return len(os.listdir(f'/proc/{pid}/fd')), total / (1 << 20)


class Watch(threading.Thread):
    """Records a worker's maximum of threads, descriptors and stored output."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.over, self.threads, self.fds, self.output = pid, threading.Event(), 0, 0, 0.0
        self.start()

    def run(self):
        while not self.over.wait(0.02):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
                self.threads = max(self.threads, int(status(self.pid)['Threads']))
                n, output = files(self.pid)
                self.fds, self.output = max(self.fds, n), max(self.output, output)


def session(server, what):
    return subprocess.Popen([OUTBOARD, 'run', '--server', server.url, '--', PROGRAM, what], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                            text=True, env=ENV)


def answer(program):
    """Returns the last line of the program's output and the lines before it."""
    lines = []
    for line in program.stderr:
        lines.append(line)
        found = re.match(r'made (\d+) result (\d+) works (\d)', line)
        if found:
            return [int(x) for x in found.groups()], lines
    return [-1, -1, 0], lines


def worker_of(server, n):
    """Returns the worker of the n-th session, or None if it has not started."""
    started = [m.group(1) for line in server.lines if (m := re.search(r'starts on worker (\d+)', line))]
    return int(started[n]) if len(started) > n else None


def bomb(server, what, n):
    with session(server, what) as program:
        waiting.until(lambda: worker_of(server, n) or program.poll() is not None)
        watch = Watch(worker_of(server, n))
        (made, result, works), lines = answer(program)
        most = int(status(watch.pid)['VmHWM']) / 1024 if works else -1
        watch.over.set()
        watch.join()
        program.communicate('\n', timeout=waiting.LONG)
    check(f'{what}: {"what is too much is refused" if REFUSED[what] else "nothing is refused"}', made > 0 and result == REFUSED[what], (made, result, lines))
    check(f'{what}: the session goes on', works == 1 and program.returncode == 0, lines)
    # Memory outside the budget: the program itself, the device's memory, and small uncounted items.
    check(f'{what}: memory is bounded', 0 < most < TIMES * (BUDGET_MIB + DEVICE_MIB + 40), most)
    check(f'{what}: threads and descriptors are', watch.threads < 64 + (300 if what == 'threads' else 0) and watch.fds < 100, (watch.threads, watch.fds))
    check(f'{what}: output that nobody fetches is', watch.output <= OUTPUT_MIB, watch.output)
    if what == 'prints':
        check('prints: what is lost is told', any('the rest is lost' in line for line in lines) and waiting.until(lambda: server.said('was lost')), lines)


def main():
    with Server(SERVER, '--driver', 'soft', '--max-memory', f'{DEVICE_MIB}MiB', '--max-host-memory', f'{BUDGET_MIB}MiB', '--warm', '2') as s:
        with session(s, 'nothing') as other:
            first, _ = answer(other)
            check('another session is there', first == [0, 0, 1], first)
            for n, what in enumerate(REFUSED):
                bomb(s, what, n + 1)
            other.communicate('\n', timeout=waiting.LONG)
        check('it notices nothing', other.returncode == 0, other.returncode)
    # With a budget for more contexts than there are numbers for.
    with Server(SERVER, '--driver', 'soft', '--max-host-memory', '1GiB') as s, session(s, 'contexts') as program:
        (made, result, works), lines = answer(program)
        program.communicate('\n', timeout=waiting.LONG)
        check('contexts: their number is limited, and the session goes on', 1000 < made <= 1100 and (result, works) == (2, 1), (made, result, works, lines))
    finish()


main()
