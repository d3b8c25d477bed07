# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A program (victim.c) runs over a connection on which a proxy changes the server's data: sizes,
counts, flags, numbers, results, texts, maps. Replies and messages are repeated, omitted, swapped
or forged, and put into frames again so that the rest of the protocol stays valid. The program
must end with the right result or with an error of a call: no crash, no overwritten guard, no
sanitizer report, no hang.

    hostile_server.py OUTBOARD SERVER VICTIM SEEDS [FIRST_SEED]
    hostile_server.py OUTBOARD SERVER VICTIM seed N          one seed, and what was changed
    hostile_server.py OUTBOARD SERVER VICTIM minutes N       as many seeds as fit
"""
import concurrent.futures
import os
import subprocess
import sys
import tempfile
import time

sys.path.append(sys.path[0] + '/../lib')
from hostile import STEER, Hostile
from outboard_test import Server, bad, check

OUTBOARD, SERVER, VICTIM = sys.argv[1:4]
DEADLINE = 50                # seconds for one program, whose own time-outs take some seconds
AT_ONCE = 6
# Changes of data that the client cannot detect.
MAY_BE_WRONG = ('type 5:', 'reply_body', 'random_bytes', 'replies_exchanged', 'reply_repeated', 'header_field', 'reply_field', 'reply_left_out', 'part_', 'reply_in_pieces', 'message_', 'reply_result',
                'made_up_')

# In all runs. A reply was left out and a text added, so that the client's number of replies was that
# of the server; a kernel's output was random bytes.
ALWAYS = (5160, 5475)

SETTINGS = ({}, {'OUTBOARD_GRACE': '0'}, {'OUTBOARD_STRIPES': '2', 'OUTBOARD_STRIPE_MIN': '1M'}, {'OUTBOARD_CODEC': 'lz4'},
            {'OUTBOARD_OPT': '-async'}, {'OUTBOARD_UPLOAD_CACHE': 'always'})


def steers(complained, texts):
    """Whether a log line has control characters. Kernels' output goes to a file unchanged."""
    for text in sorted(filter(None, texts), key=len, reverse=True):
        complained = complained.replace(text, b'')
    return STEER.search(complained.decode('utf-8', 'surrogateescape').replace('\n', '').replace('\t', ''))


def victim(url, seed):
    """Returns what is wrong with the program's end, or None, and the changes that were made."""
    settings = {'OUTBOARD_TIMEOUT': '2', 'OUTBOARD_GRACE': '3', 'OUTBOARD_DEAD': '2', **SETTINGS[seed % len(SETTINGS)]}
    hostile = Hostile(url, seed, 'OUTBOARD_STRIPES' in settings)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        program = subprocess.Popen([OUTBOARD, 'run', '--server', hostile.url, '--', VICTIM], stdout=out, stderr=err, env=dict(os.environ, **settings))
        began = time.monotonic()
        try:
            code = program.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()
            code = 'a hang'
        took = time.monotonic() - began
        out.seek(0)
        err.seek(0)
        said, complained = out.read(), err.read()
    hostile.close()
    wrong = None
    if code not in (0, 3, 4):
        wrong = f'it ended with {code}'
    elif code == 4 and not any(word in change for change in hostile.log for word in MAY_BE_WRONG):
        wrong = 'a wrong result'
    elif b'Sanitizer' in complained or b'runtime error' in complained:
        wrong = 'a sanitizer reports'
    elif steers(complained, hostile.texts):
        wrong = 'an error line that steers a terminal'
    return wrong, code, hostile.log, took, said, complained


def main():
    # The kernel's output goes to a file unchanged; log lines must be clean nevertheless.
    # Every third program uses a driver without virtual memory management, where the server says what
    # addresses memory has.
    servers = [Server(SERVER, '--driver', 'soft', '--max-sessions', '64', listen='tcp://127.0.0.1:0', env=env)
               for env in ({}, {'OUTBOARD_FAULT': 'cuMemAddressReserve:*=801'})]
    server_lines = 0
    first, seeds, until, loud = 1, 0, None, False
    if sys.argv[4] == 'minutes':
        first, until = int(time.time()) % 1000000 * 1000, time.monotonic() + 60 * float(sys.argv[5])
    elif sys.argv[4] == 'seed':
        first, seeds, loud = int(sys.argv[5]), 1, True
    else:
        seeds, first = int(sys.argv[4]), int(sys.argv[5]) if len(sys.argv) > 5 else 1
    codes, changes, slowest, seed = {}, {}, 0, first
    always = [] if loud or until else [n for n in ALWAYS if not first <= n < first + seeds]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        while time.monotonic() < until if until else seed < first + seeds:
            batch = range(seed, seed + 8 * AT_ONCE) if until else range(seed, min(seed + 8 * AT_ONCE, first + seeds))
            batch, always = [*always, *batch], []
            for number, (wrong, code, log, took, said, complained) in zip(batch, pool.map(lambda n: victim(servers[n % 3 == 0].url, n), batch)):
                codes[code] = codes.get(code, 0) + 1
                slowest = max(slowest, took)
                for line in log:
                    name = line.split()[-1]
                    changes[name] = changes.get(name, 0) + 1
                if wrong or loud:
                    print(f'seed {number}: {wrong}; ended with {code} after {took:.1f} s')
                    print('  ' + '\n  '.join(log))
                    print(complained[-3000:].decode('utf-8', 'replace'))
                if wrong:
                    bad.append(number)
            seed = batch[-1] + 1
    print(f'seeds {first} to {seed - 1}: ended with {codes}; slowest {slowest:.1f} s')
    print('changes: ' + ', '.join(f'{name} {n}' for name, n in sorted(changes.items())))
    check('every program ended with a right result or an error of a call', not bad, bad)
    for server in servers:
        check('the server lives', server.process.poll() is None)
        server.stop()
    sys.exit(bool(bad))


main()
