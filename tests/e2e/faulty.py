# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Socket errors. An errno that the network can cause counts as a broken connection, and the session
continues. Any other ends the session with one log line.

    faulty.py OUTBOARD SERVER INIT FAULTY_LIBRARY
"""
import errno
import os
import sys

sys.path.append(sys.path[0] + '/../lib')
from outboard_test import Server, check, finish, needs, run

OUTBOARD, SERVER, INIT, LIBRARY = sys.argv[1:5]
needs('resume')
PRELOAD = ' '.join(filter(None, (os.environ.get('OUTBOARD_TEST_PRELOAD'), LIBRARY)))
BREAKS = (errno.EPIPE, errno.ECONNRESET, errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EPERM, errno.ENOBUFS)
FAULTS = (errno.EFAULT, errno.EINVAL, errno.ENOMEM, errno.EMSGSIZE, errno.EOPNOTSUPP)
DOING = {'send': 'sending calls to the server', 'recv': 'receiving replies'}

with Server(SERVER, '--driver', 'null') as server:
    for call, skipped in (('send', 1), ('recv', 2)):
        for number in BREAKS:
            out, done = run(OUTBOARD, server.url, INIT, env={'LD_PRELOAD': PRELOAD, 'FAULTY': f'{call} {number} {skipped} 1', 'OUTBOARD_LOG': 'info'})
            check(f'{call}: {errno.errorcode[number]} is a break', out.split() == ['0', '0'] and 'was restored after' in done.stderr, (out, done.stderr))
        for number in FAULTS:
            out, done = run(OUTBOARD, server.url, INIT, env={'LD_PRELOAD': PRELOAD, 'FAULTY': f'{call} {number} {skipped} 1'})
            check(f'{call}: {errno.errorcode[number]} ends the session', out.split() == ['0', '46'], (out, done.stderr))
            check(f'{call}: {errno.errorcode[number]}: one line says where and why', done.stderr.count('\n') == 1 and f'(errno {number})' in done.stderr
                  and DOING[call] in done.stderr, done.stderr)
finish()
