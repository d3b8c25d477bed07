# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The memory of a client: what a small program takes, and that an idle client gives back what a
burst of calls has used, to within 0.5 MiB. The calls after that have right results.

    memory.py OUTBOARD SERVER PROGRAM exact|sanitized

sanitized: a sanitizer keeps memory of its own, so that only large differences can be seen.
"""
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.append(sys.path[0] + '/../lib')
import waiting
from outboard_test import ENV, Server, check, finish, needs

OUTBOARD, SERVER, PROGRAM = sys.argv[1:4]
EXACT = sys.argv[4] == 'exact'
MIB = 1 << 20
# A small program: written pages (RssAnon), and all pages, those of the C library too. How many of the
# latter there are depends on where the linker puts what is touched: the kernel maps 64 KiB around it.
SMALL_ANON, SMALL = 1.4 * MIB, 5.5 * MIB
NEAR = MIB / 2
RING = 8 * MIB  # the most that a burst of launches takes
# Launches fill the ring, as the server stands still meanwhile. Copies fill the buffers of the codecs.
LAUNCHES, COPIES, LONG = 'launches 300000', 'copies 48 4000000', 'copies 4 32000000'
if not EXACT:  # AddressSanitizer of gcc 14 takes stacks of its own for each thread, and keeps freed memory
    ENV['ASAN_OPTIONS'] = ENV.get('ASAN_OPTIONS', '') + ':detect_stack_use_after_return=0:quarantine_size_mb=0:thread_local_quarantine_size_kb=0'
ENV.pop('MALLOC_PERTURB_', None)  # writes to what malloc returns, and so takes all of it


class Watched:
    """The program, which executes one line at a time."""

    def __init__(self, url, **env):
        self.process = subprocess.Popen([OUTBOARD, 'run', '--server', url, '--', PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env={**ENV, **env})
        self.said = self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        check('the program ends well', self.process.wait(waiting.LONG) == 0, self.process.returncode)

    def do(self, line, meanwhile=lambda: None):
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()
        meanwhile()
        said = self.process.stdout.readline().strip()
        check(f'{line}: right results', said == 'done', said)

    def memory(self, what='RssAnon'):
        status = pathlib.Path(f'/proc/{self.process.pid}/status').read_text()
        return int(re.search(rf'{what}:\s+(\d+) kB', status).group(1)) << 10


def shown(size):
    return f'{size / MIB:.2f} MiB'


def launch_much(server, program):
    """Launches while the server's worker is stopped, until the ring is full, and then the rest.
    Returns the memory with the full ring."""
    full, peak = program.memory() + RING - MIB, 0
    workers = waiting.until(server.workers)
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)

    def go_on():
        nonlocal peak
        waiting.until(lambda: program.memory() >= full, waiting.AT_ONCE)
        peak = program.memory()
        for worker in workers:
            os.kill(worker, signal.SIGCONT)
    program.do(LAUNCHES, go_on)
    return peak


def burst_and_back(server, program, line, least):
    """least: bytes that the line must add, so that there is something to give back."""
    before = program.memory()
    if line == LAUNCHES and 'OUTBOARD_RING' not in ENV:
        peak = launch_much(server, program)
    else:
        program.do(line)
        peak = program.memory()
    limit = before + NEAR if EXACT else before + max(NEAR, (peak - before) / 2)
    if 'OUTBOARD_RING' not in ENV:
        check(f'{line}: a burst takes memory: {shown(before)}, then {shown(peak)}', peak >= before + least)
        if line == LAUNCHES and EXACT:
            check(f'{line}: at most the ring', peak <= before + RING + NEAR, shown(before + RING + NEAR))
    waiting.until(lambda: program.memory() <= limit, waiting.AT_ONCE)
    after = program.memory()
    check(f'{line}: it is given back: {shown(after)}', after <= limit, shown(limit))


def main():
    needs('release,async,batch,byref,stripe,compress')
    with Server(SERVER, '--driver', 'soft') as server:
        with Watched(server.url) as program:
            check('a small program runs', program.said == 'done', program.said)
            if EXACT:
                anon, whole = program.memory(), program.memory('VmRSS')
                check(f'a small program: {shown(anon)} written, {shown(whole)} resident', anon <= SMALL_ANON and whole <= SMALL)
            for line in LAUNCHES, COPIES, LAUNCHES:
                burst_and_back(server, program, line, 4 * MIB if line == LAUNCHES else 0)
        for codec, stripes in ('planes', '0'), ('zstd', '0'), ('zstd', '3'):
            with Watched(server.url, OUTBOARD_CODEC=codec, OUTBOARD_STRIPES=stripes) as program:
                print(f'codec {codec}, {stripes} stripes')
                for _ in range(2):
                    burst_and_back(server, program, LONG, 0.6 * MIB if EXACT else 0)
        with Watched(server.url, OUTBOARD_OPT='-release') as program:
            program.do(LAUNCHES)
            peak = program.memory()
            waiting.let_pass(5, 'memory is given back after two seconds')
            check('without the switch it stays', program.memory() >= peak - MIB, (shown(peak), shown(program.memory())))
    finish()


main()
