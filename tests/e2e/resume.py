# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Connections break at random times while a program runs. Its output must be that of an unbroken
run, and the server must have executed every call exactly once.

    resume.py OUTBOARD SERVER PROGRAM CUTS [ROUNDS] [SEED] [-- FURTHER PROGRAMS...]
"""
import collections
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.append(sys.path[0] + '/../lib')
import cutter
import outboard_test
import waiting
from outboard_test import bad, check, needs

OUTBOARD, SERVER, PROGRAM = sys.argv[1:4]
CUTS = int(sys.argv[4])
FURTHER = sys.argv[sys.argv.index('--') + 1:] if '--' in sys.argv else []
GIVEN = sys.argv[5:len(sys.argv) - len(FURTHER) - bool(FURTHER)]
ROUNDS = GIVEN[0] if GIVEN else '6'
SEED = int(GIVEN[1]) if len(GIVEN) > 1 else 1
# The driver calls that are counted. Calls that depend on a thread's timing are not counted
# (contexts made current, events polled).
COUNTED = re.compile(r'cu(LaunchKernel|LaunchHostFunc|Memcpy\w*|Memset\w*|Mem(Alloc|Free|Create|Release)\w*|Stream(Create|Destroy)\w*|Module\w*)$')
needs('resume')


class Server(outboard_test.Server):
    """A server that counts the calls of its driver."""

    def __init__(self, url, *options, **env):
        super().__init__(SERVER, '--driver', 'soft', *options, listen=url, env={'OUTBOARD_STATS': '1', **env})

    def calls(self):
        """Returns the driver calls, by name, of the sessions that ended since the previous call."""
        # The worker writes its lines to the same pipe before it ends, and the server reports its
        # end after that.
        waiting.until(lambda: any(re.search(r'session \w+ ended', line) for line in self.lines))
        found = collections.Counter()
        for line in self.lines:
            hit = re.search(r'stats:\s+(\d+)\s+(\w+)', line)
            if hit and COUNTED.match(hit.group(2)):
                found[hit.group(2)] += int(hit.group(1))
        said = ''.join(self.lines)
        self.lines.clear()
        return found, said


def run(url, command, timeout=280, **env):
    began = time.monotonic()
    try:
        done = subprocess.run([OUTBOARD, 'run', '--stats', '--server', url, '--', *command], capture_output=True, text=True, timeout=timeout,
                              env=dict(os.environ, **env))
    except subprocess.TimeoutExpired as late:
        return None, str(late.stdout)[-2000:], str(late.stderr)[-3000:], timeout
    return done.returncode, done.stdout, done.stderr, time.monotonic() - began


def compare(name, server, folder, listen, command, cuts, mean, half, control, seed=SEED, kinds=('new', 'data', 'stripe'), copies=True, **env):
    """Compares an unbroken run with one through a proxy that breaks connections; returns the number
    of breaks. copies: the number of the driver's copies must be the same, too."""
    code, out, err, took = run(server.url, command, **env)
    calls, said = server.calls()
    check(f'{name}: runs unbroken', code == 0 and calls, (code, out, err[-1500:]))
    proxy = cutter.Proxy(listen, server.url, cuts, mean, half, control, seed, kinds)
    code2, out2, err2, took2 = run(proxy.url, command, **env)
    calls2, said2 = server.calls()
    made = proxy.total()
    proxy.close()
    check(f'{name}: the same output through {made} breaks {proxy.made}, {took:.1f} s became {took2:.1f} s', code2 == code and out2 == out, (code2, out2, err2[-3000:], said2[-1500:]))
    for name_of in [n for n in calls | calls2 if not copies and n.startswith('cuMemcpy')]:
        calls.pop(name_of, None)
        calls2.pop(name_of, None)
    check(f'{name}: the server executed the same calls ({sum(calls.values())})', calls2 == calls, (calls2 - calls, calls - calls2))
    print(''.join(line + '\n' for line in err2.splitlines() if 'link:' in line or 'stripes' in line), end='')
    return made


def main():
    made = 0
    with tempfile.TemporaryDirectory() as folder:
        server = Server(f'unix:{folder}/s')
        size = str(9 << 20)
        traffic = 2 * 3 * int(ROUNDS) * (9.5 * (1 << 20))
        made += compare('data and control', server, folder, 'tcp:', [PROGRAM, '3', ROUNDS, size], CUTS, traffic / CUTS / 1.5, 0, True)
        made += compare('data alone, on a unix socket', server, folder, f'unix:{folder}/p', [PROGRAM, '2', ROUNDS, size], CUTS, traffic / CUTS / 2, 0, False)
        made += compare('shared memory', server, folder, f'shm:{folder}/m', [PROGRAM, '3', str(4 * int(ROUNDS)), size], CUTS, 1 << 20, 0, True)
        made += compare('open but dead', server, folder, 'tcp:', [PROGRAM, '2', '3', size], 3, 4 << 20, 1, True, OUTBOARD_DEAD='4')
        made += compare('packed', server, folder, 'tcp:', [PROGRAM, '2', '3', size], CUTS, 100 << 10, 0, True, OUTBOARD_CODEC='planes')
        check('enough breaks', made >= CUTS, made)
        for program in FURTHER:
            made += compare(os.path.basename(program), server, folder, 'tcp:', [program], 10, 60 << 10, 0, True)
        server.stop()
        server = Server(f'unix:{folder}/o', '--max-outstanding', '8MiB')
        compare('few results outstanding', server, folder, 'tcp:', [PROGRAM, '3', '3', size], 8, 4 << 20, 0, True)
        server.stop()
        cert, key = f'{folder}/cert.pem', f'{folder}/key.pem'
        subprocess.run([OUTBOARD, 'cert', '--cert', cert, '--key', key], check=True, stdout=subprocess.DEVNULL)
        server = Server('tls://127.0.0.1:0', '--tls-cert', cert, '--tls-key', key)
        made = compare('TLS', server, folder, 'tls:', [PROGRAM, '2', ROUNDS, size], CUTS, traffic / CUTS / 2, 0, True, OUTBOARD_TLS_CA=cert)
        # Frames with many calls arrive at once: connections break again while the server still
        # executes calls of the previous one.
        for seed in range(SEED, SEED + 3):
            made += compare('TLS, packed', server, folder, 'tls:', [PROGRAM, '2', '3', size], 3 * CUTS, 100 << 10, 0, True, seed, OUTBOARD_TLS_CA=cert,
                            OUTBOARD_CODEC='lz4')
        check('enough breaks of TLS', made >= CUTS, made)
        server.stop()
    print(f'{made} breaks, {len(bad)} wrong')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
