# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Very many calls of each kind through the session log. All results and data must be right, and the
driver must have executed each call exactly once.
soak.py BUILD COUNT [--driver soft|null|LIBRARY] [--listen tcp,unix,shm] [--ring 64K] [KIND...]
"""
import argparse
import re
import subprocess
import sys
import tempfile
import time

sys.path.append(sys.path[0] + '/../lib')
from outboard_test import ENV, Server, check, finish

# The driver's calls for each kind, and how many of the program's calls one of them executes.
ASKED = {'launch': {'cuLaunchKernel': 1}, 'event': {'cuEventRecord': 4, 'cuStreamWaitEvent': 4}, 'memset': {'cuMemsetD8Async': 1},
         'copy-across': {'cuMemcpyDtoDAsync_v2': 1}, 'stream': {'cuStreamCreateWithPriority': 2}, 'answer': {'cuMemGetInfo_v2': 1},
         'launch-and-wait': {'cuLaunchKernel': 2}, 'record': {'cuEventRecord': 1}}


def asked(lines):
    found = {}
    for line in lines:
        if hit := re.search(r'stats:\s+(\d+)\s+(\w+)', line):
            found[hit.group(2)] = found.get(hit.group(2), 0) + int(hit.group(1))
    return found


def soak(arguments, name, listen):
    build, soft = arguments.build, arguments.driver == 'soft'
    with Server(f'{build}/server/outboard-server', '--driver', arguments.driver, listen=listen, env={'OUTBOARD_STATS': '1'}) as server:
        # Without the option 'local' each cuMemGetInfo is a round trip.
        env = dict(ENV, OUTBOARD_LOG='info', OUTBOARD_OPT=','.join(filter(None, (ENV.get('OUTBOARD_OPT'), '-local'))),
                   **({'OUTBOARD_RING': arguments.ring} if arguments.ring else {}))
        began = time.monotonic()
        done = subprocess.run([f'{build}/tools/outboard', 'run', '--stats', '--server', server.url, '--', f'{build}/tests/e2e/e2e_soak',
                               str(arguments.count), 'data' if soft else 'calls', *arguments.kinds],
                              capture_output=True, text=True, env=env, timeout=arguments.limit)
        took = time.monotonic() - began
        check(f'{name}: every call succeeds, all data is right ({took:.1f} s)', done.returncode == 0, (done.returncode, done.stdout, done.stderr[-2000:]))
        check(f'{name}: no connection was made again', not re.search('reconnecting|restored', done.stderr), done.stderr[-2000:])
        end = time.monotonic() + 10
        while not server.said('ended') and time.monotonic() < end:
            time.sleep(0.05)  # poll
        time.sleep(0.2)  # poll
        counts = asked(server.lines)
        if done.returncode:
            print(f'     the server (exit code {server.process.poll()}) said:', *server.lines[-20:], sep='\n     ')
    wanted = {}
    for kind, calls, seconds in re.findall(r'^(\S+) (\d+) ([\d.]+)$', done.stdout, re.M):
        print(f'     {name} {kind}: {int(calls):,} calls in {float(seconds):.1f} s, {float(seconds) / int(calls) * 1e9:.0f} ns each')
        for call, stands_for in ASKED.get(kind, {}).items():
            wanted[call] = wanted.get(call, 0) + int(calls) // stands_for
    for call, calls in wanted.items():
        check(f'{name}: {call} was executed as often as it was called', 0 <= counts.get(call, 0) - calls <= 4, (counts.get(call), calls))
    return done.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build')
    parser.add_argument('count', type=int)
    parser.add_argument('--driver', default='soft', help='what the server stands on (default soft)')
    parser.add_argument('--listen', default='tcp,unix,shm', help='ways to the server (default all three)')
    parser.add_argument('--ring', help='OUTBOARD_RING of the program')
    parser.add_argument('--limit', type=float, default=1800, help='seconds for one program (default 1800)')
    parser.add_argument('kinds', nargs='*', help='kinds of calls (default all)')
    arguments = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.listen.split(','):
            soak(arguments, name, 'tcp://127.0.0.1:0' if name == 'tcp' else f'{name}:{folder}/{name}')
    finish()


if __name__ == '__main__':
    main()
