# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""cuMemGetInfo in a loop is answered by the client, and never differs from what the server would
answer: after each call of the program itself, and half a second after a call of another program.

    free_memory.py OUTBOARD SERVER PROGRAM DRIVER [soft]
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
import waiting
from outboard_test import ENV, Server, check, finish, needs

OUTBOARD, SERVER, PROGRAM, DRIVER = sys.argv[1:5]
OLD_S = 0.5                             # OBC_FREE_MEMORY_NS
NO_LOCAL = ','.join(filter(None, (ENV.get('OUTBOARD_OPT'), '-local')))
needs('local')


def run(server, *arguments, **env):
    """Returns the lines that the program prints, and the round trips for cuMemGetInfo."""
    done = subprocess.run([OUTBOARD, 'run', '--stats', '--server', server.url, '--', PROGRAM, *arguments], capture_output=True, text=True,
                          env={**ENV, **env}, timeout=waiting.LONG)
    trips = re.search(r'mem_info +\d+ +(\d+)', done.stderr)
    check(f'{" ".join(arguments)} {env or ""}: the program ends well', done.returncode == 0 and trips, (done.returncode, done.stdout, done.stderr))
    return done.stdout.splitlines(), int(trips.group(1)) if trips else 0


def loop(server):
    _, trips = run(server, 'loop', '10000')
    check('10,000 calls need a few round trips', 1 <= trips <= 10, trips)
    _, trips = run(server, 'loop', '200', OUTBOARD_OPT=NO_LOCAL)
    check('without the option each call is one', trips == 200, trips)


def own(server, name):
    fast, few = run(server, 'own')
    slow, all_of_them = run(server, 'own', OUTBOARD_OPT=NO_LOCAL)
    check(f'{name}: answers after own changes are exact', fast == slow, (fast, slow))
    check(f'{name}: the program sees its changes', len(set(fast)) > 10, fast)
    check(f'{name}: unchanged memory is not asked for', few < all_of_them, (few, all_of_them))


def other(server):
    """Another session allocates while a program watches."""
    taker = subprocess.Popen([OUTBOARD, 'run', '--server', server.url, '--', PROGRAM, 'take'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENV)
    taker.stdout.readline()
    watcher = subprocess.Popen([OUTBOARD, 'run', '--stats', '--server', server.url, '--', PROGRAM, 'watch', '6'], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env=ENV)
    watcher.stdout.readline()
    taken = []
    for pause in 1.7, 0.9, 1.1:
        waiting.let_pass(pause, 'changes come at different times of a loop')
        taker.stdin.write('\n')
        taker.stdin.flush()
        taken.append(float(taker.stdout.readline()))
    said, report = watcher.communicate(timeout=waiting.LONG)
    taker.stdin.close()
    taker.wait(waiting.LONG)
    seen = [(int(free), float(last)) for free, last in (line.split() for line in said.splitlines())]
    start, size = seen[0][0], 64 << 20
    check('three allocations of another program are seen', [free for free, _ in seen] == [start - n * size for n in range(4)], (seen, taken))
    for (free, last), when in zip(seen, taken):
        check(f'{free} bytes are not told {OLD_S} s later', last < when + OLD_S, (seen, taken))
    trips = int(re.search(r'mem_info +\d+ +(\d+)', report).group(1))
    print(f'     {trips} round trips in 6 s; told until {[round(last - when, 3) for (_, last), when in zip(seen, taken)]} s after the allocation')


def main():
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes(8))
        file.flush()
        os.chmod(file.name, 0o666)
        # Without slabs: each allocation of a program is one of the driver.
        env = {'MEMORY_DRIVER_FILE': file.name, 'OUTBOARD_OPT': ','.join(filter(None, (ENV.get('OUTBOARD_OPT'), '-grant')))}
        with Server(SERVER, '--driver', DRIVER, env=env) as server:
            loop(server)
            own(server, 'shared')
            other(server)
    for name in sys.argv[5:]:
        with Server(SERVER, '--driver', name) as server:
            own(server, name)
    finish()


main()
