# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Much happens while a copy of pinned memory is under way: the session goes on, whatever the size of
the client's ring.

    beside.py OUTBOARD SERVER PROGRAM
"""
import sys

sys.path.append(sys.path[0] + '/../lib')
import outboard_test
from outboard_test import check, finish, needs

OUTBOARD, SERVER, PROGRAM = sys.argv[1:4]


def main():
    needs('background,async,byref,resume')
    with outboard_test.Server(SERVER, '--driver', 'soft') as server:
        for ring in '64K', '4M', '8M', '64M':
            for what in 'records', 'bursts':
                out, done = outboard_test.run(OUTBOARD, server.url, PROGRAM, what, env={'OUTBOARD_RING': ring}, timeout=200)
                check(f'{what}, ring of {ring}', done.returncode == 0 and out == 'done\n', (done.returncode, out, done.stderr[-800:]))
        # Over the data connection only.
        out, done = outboard_test.run(OUTBOARD, server.url, PROGRAM, 'beside', env={'OUTBOARD_OPT': '-stripe,-cache'}, timeout=200)
        check('a large copy beside', done.returncode == 0 and out == 'done\n', (done.returncode, out, done.stderr[-800:]))
        out, done = outboard_test.run(OUTBOARD, server.url, PROGRAM, 'elapsed')
        check('elapsed time of complete events', done.returncode == 0 and out.endswith('done\n'), (done.returncode, out, done.stderr[-800:]))
        check('measured while the copy was under way', 'under way' in out, out)
    finish()


main()
