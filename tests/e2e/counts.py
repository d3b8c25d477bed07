# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""What a call costs the client, in counts that do not depend on the load of the machine: system calls
(strace) or instructions of the calling thread (callgrind). A count is that of a long loop of calls less
that of a short one, divided by the difference. Each has an upper bound.

    counts.py system-calls|instructions BUILD [KIND...]

Both sides sleep instead of spin (OUTBOARD_OPT=-spin), because the number of turns of a spinning
thread depends on time. "answer" is a call that only the server can answer (OUTBOARD_OPT=-local),
"query-busy" a query of an event that is not complete. Who lowers a count lowers its bound here.
"""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
from outboard_test import ENV, Server, check, finish, skip

MODE, BUILD, *KINDS = sys.argv[1:]
LIMIT = 200
TRIES = 3  # the order in which threads run decides how often a slow path is taken
# Loops of e2e_soak: calls of the short and of the long run.
LOOPS = {'system-calls': (1000, 11000), 'instructions': (500, 3500)}
# Copies that go on after their call, by the name of the call. Only what the call itself costs is
# counted. With more than 256 reads pending, a read waits for its bytes.
BACKGROUND = {'upload': 'cuMemcpyHtoDAsync_v2', 'read-later': 'cuMemcpyDtoHAsync_v2'}
BACKGROUND_LOOP = 40, 240
# System calls of one turn of the loop: of the calling thread, of all threads. The second depends on
# how often the sender thread is woken, so there is room. An answer: fstat, which checks that the
# descriptor is still the client's, sendmsg, fstat, recvfrom. A query of an incomplete event: recvfrom
# and sometimes fstat. A copy in the background: it wakes a thread at most.
SYSTEM_CALLS = {
    'launch': (0.1, 0.4),
    'launch-pinned': (0.1, 0.4),
    'copy-4k': (0.2, 0.6),
    'answer': (4.2, 4.8),
    'launch-and-wait': (5.1, 9.0),
    'record': (0.1, 0.4),
    'query': (0.02, 0.1),
    'wait-idle': (0.02, 0.1),
    'upload': (1.1,),
    'read-later': (1.1,),
    'query-busy': (2.1, 2.6),
}
# Instructions of the calling thread for one turn of the loop, the loop's own included: what gcc 12 makes
# of the client library on x86-64, and 5 to 10 %.
INSTRUCTIONS = {
    'launch': 735,
    'launch-pinned': 945,
    'copy-4k': 1775,
    'answer': 2240,
    'launch-and-wait': 2790,
    'record': 495,
    'query': 226,
    'wait-idle': 232,
    'upload': 1410,
    'read-later': 1320,
    'query-busy': 820,
}


def soak(server, prefix, count, kind):
    done = subprocess.run([*prefix, f'{BUILD}/tests/e2e/e2e_soak', str(count), 'calls', kind], capture_output=True, text=True, timeout=LIMIT,
                          env=dict(ENV, OUTBOARD_OPT='-spin,-local' if kind == 'answer' else '-spin', OUTBOARD_SERVER=server.url, LD_LIBRARY_PATH=f'{BUILD}/client-shim'))
    if done.returncode:
        check(f'{kind}: the program runs', False, done.stdout + done.stderr[-2000:])
        finish()


def system_calls(server, folder, count, kind):
    """Returns the system calls of the main thread, and of all threads. Of copies in the background:
    of the main thread alone, until all copies have begun."""
    log = folder / 'strace'
    soak(server, ['strace', '-f', '-qq', '-o', log], count, kind)
    by_thread, first = collections.Counter(), None
    with open(log) as lines:
        for line in lines:
            thread, _, what = line.partition(' ')
            first = first or thread
            if kind in BACKGROUND and thread == first and what.lstrip().startswith('getppid('):
                return (by_thread[first],)
            by_thread[thread] += re.match(r' *\w+\(', what) is not None  # not: <... resumed>, --- SIGNAL ---
    return by_thread[first], sum(by_thread.values())


def instructions(server, folder, count, kind):
    """Returns the instructions of the main thread."""
    inside = [f'--toggle-collect={BACKGROUND[kind]}'] if kind in BACKGROUND else []
    soak(server, ['valgrind', *inside, '-q', '--tool=callgrind', '--fair-sched=try', '--separate-threads=yes', f'--callgrind-out-file={folder}/callgrind'], count, kind)
    return (int(re.search(r'^totals: (\d+)', (folder / 'callgrind-01').read_text(), re.M)[1]),)


def main():
    tool = 'strace' if MODE == 'system-calls' else 'valgrind'
    if not shutil.which(tool):
        skip(f'{tool} is missing')
    if '-' in os.environ.get('OUTBOARD_OPT', ''):
        skip('the bounds are for the client with its optimisations on')
    if tool == 'strace' and subprocess.run(['strace', '-qq', '-o', os.devnull, 'true'], capture_output=True).returncode:
        skip('strace may not trace processes here')
    ENV.pop('OUTBOARD_RING', None)
    ENV['OUTBOARD_OPT'] = '-spin'
    bounds, count = (SYSTEM_CALLS, system_calls) if MODE == 'system-calls' else ({kind: (most,) for kind, most in INSTRUCTIONS.items()}, instructions)
    program = f'{BUILD}/server/outboard-server'
    with tempfile.TemporaryDirectory() as name, Server(program, '--driver', 'null') as server, \
            Server(program, '--driver', 'null', env={'OUTBOARD_FAULT': 'cuEventQuery:*=600'}) as busy:
        folder = pathlib.Path(name)
        for kind, most in bounds.items():
            if KINDS and kind not in KINDS:
                continue
            short, long = BACKGROUND_LOOP if kind in BACKGROUND else LOOPS[MODE]
            for _ in range(TRIES):
                few, many = (count(busy if kind == 'query-busy' else server, folder, n, kind) for n in (short, long))
                each = [(b - a) / (long - short) for a, b in zip(few, many)]
                if all(value <= bound for value, bound in zip(each, most)):
                    break
            for who, value, bound in zip(('the calling thread', 'all threads'), each, most):
                check(f'{kind}: {value:.2f} {MODE.replace("-", " ")} of {who}, at most {bound}', value <= bound)
    finish()


main()
