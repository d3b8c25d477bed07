# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Programs that cancel threads, call CUDA in signal handlers, exit in one, close descriptors that
they did not open, or end at once: each has one defined result.

    habits.py OUTBOARD SERVER HABITS INIT [QUICK]
"""
import concurrent.futures
import re
import subprocess
import sys
import tempfile
import time

sys.path.append(sys.path[0] + '/../lib')
import waiting
from outboard_test import Server, check, finish, needs, run

OUTBOARD, SERVER, HABITS, INIT = sys.argv[1:5]
QUICK = int(sys.argv[5]) if len(sys.argv) > 5 else 300
NOT_AVAILABLE = 46
needs('resume,async,batch')


def habit(name, mode, url, **env):
    try:
        out, done = run(OUTBOARD, url, HABITS, mode, env=env, timeout=80)
        return done.returncode, out, done.stderr
    except subprocess.TimeoutExpired as late:
        return None, str(late.stdout), str(late.stderr)


def threads_and_signals(name, url):
    code, out, err = habit(name, 'cancel', url)
    check(f'{name}: threads are cancelled within calls, the others go on', code == 0 and err == '', (code, out, err))
    code, out, err = habit(name, 'handler', url)
    check(f'{name}: calls in a signal handler succeed or are refused, and hold nobody up', code == 0 and 'handler: called, refused, other 0' in out, (code, out, err))
    check(f'{name}: one line says why they are refused', err.count('\n') == 1 and 'signal handler' in err, err)
    began = time.monotonic()
    code, out, err = habit(name, 'exit', url)
    check(f'{name}: exit in a signal handler that interrupted a call', code == 3 and time.monotonic() - began < waiting.AT_ONCE, (code, out, err))


def descriptors(name, url):
    code, out, err = habit(name, 'close-low', url)
    check(f'{name}: descriptors 3 to 1023 are closed: ours are above', code == 0 and err == '' and 'low' not in out, (code, out, err))
    # Over shared memory, calls are sent without a system call.
    for mode in ('close-all', 'close-reused', 'close-refilled', 'low-refilled') + (('close-held',) if name == 'tcp' else ()):
        code, out, err = habit(name, mode, url)
        check(f'{name}: {mode}: the connections are made again', code == 0 and 'the library' not in out and 'not all' not in out and err == '', (code, out, err))
        code, out, err = habit(name, mode, url, OUTBOARD_GRACE='0')
        check(f'{name}: {mode}, without resuming: errors, and nothing of the program\'s is touched', code == 1 and 'the library' not in out
              and all(int(found) == NOT_AVAILABLE for found in re.findall(r'^\w+: (\d+)$', out, re.M)), (code, out, err))
        check(f'{name}: {mode}, without resuming: one line says why', err.count('\n') == 1 and 'closed the descriptor' in err, err)


def quick(name, url):
    """Programs that end while their control connection is still being made."""
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        ends = list(pool.map(lambda _: run(OUTBOARD, url, INIT, timeout=60)[1], range(QUICK)))
    said = sorted({done.stderr for done in ends if done.stderr})
    check(f'{name}: {QUICK} programs that end at once say nothing', not said and all(done.returncode == 0 for done in ends), said[:3])


def main():
    with tempfile.TemporaryDirectory() as folder:
        for name, listen in {'tcp': 'tcp://127.0.0.1:0', 'shm': f'shm:{folder}/s'}.items():
            with Server(SERVER, '--driver', 'null', listen=listen) as server:
                threads_and_signals(name, server.url)
                descriptors(name, server.url)
                if name == 'tcp':
                    quick(name, server.url)
    finish()


main()
