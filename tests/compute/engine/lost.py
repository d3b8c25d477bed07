# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The server of a remote GPU is killed between two products: the CPU takes over, and the results
are correct.

    lost.py OUTBOARD SERVER PROGRAM
"""
import subprocess
import sys
import threading

sys.path.append(sys.path[0] + '/../../lib')
from outboard_test import ENV, Server, check, finish  # noqa: E402

OUTBOARD, SERVER, PROGRAM = sys.argv[1:4]


def main():
    with Server(SERVER, '--driver', 'soft') as server:
        env = dict(ENV, OUTBOARD_OPT='-resume', XDG_CACHE_HOME='/nonexistent')
        program = subprocess.Popen([OUTBOARD, 'run', '--server', server.url, '--', PROGRAM, 'libcuda.so.1', 'lost'], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        timer = threading.Timer(200, program.kill)
        timer.start()
        first = program.stdout.readline()
        check('products on the remote device', first == 'ready\n', first)
        server.process.kill()  # its workers end with it
        out, err = program.communicate('go\n')
        timer.cancel()
        check('the same sums after the loss', program.returncode == 0, f'{program.returncode}\n{out}{err}')
        check('by the CPU', 'done by the CPU' in out, out)
    finish()


main()
