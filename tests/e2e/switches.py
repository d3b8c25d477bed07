# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Each optimisation alone is off, in the client and in the server: programs have right results.

    switches.py OUTBOARD SERVER TREE SOAK BACKGROUND [CUDA_PROGRAM...]

All together are off in the setup slowpath. Switches of the compute library are turned off one by one by
its own tests, which compare results with the switch on and off; here it is checked that each has
one.
"""
import concurrent.futures
import os
import pathlib
import re
import sys
import tempfile
import time

sys.path.append(sys.path[0] + '/../lib')
import outboard_test
from outboard_test import check, finish, skip

OUTBOARD, SERVER, TREE, SOAK, BACKGROUND, *CUDA = sys.argv[1:]
# Of the compute library: nothing else reads them.
COMPUTE = {'levels', 'bands', 'sieve', 'adx', 'gpucells', 'lanes', 'glv', 'tune', 'ntt', 'cells', 'stage', 'tails', 'ahead'}
ALONE = 2  # at a time


def switches():
    text = (pathlib.Path(TREE) / 'base/opt.h').read_text()
    return re.findall(r'X\((\w+), "(\w+)",', text)


def wrong(result, want=None):
    """What is wrong with a program's run, or ''."""
    out, done = result
    bad = done.returncode or (want is not None and out != want) or 'there is no switch' in done.stderr
    return f'exit code {done.returncode}: {out[-400:]} {done.stderr[-800:]}' if bad else ''


def turned_off(switch, folder):
    began = time.monotonic()
    env = {'OUTBOARD_OPT': '-' + switch}
    # Both transports have shortcuts of their own.
    listen = f'shm:{folder}/{switch}' if switch == 'shm' else 'tcp://127.0.0.1:0'
    found = []
    with outboard_test.Server(SERVER, '--driver', 'soft', listen=listen, env=env) as server:
        def run(*program):
            return outboard_test.run(OUTBOARD, server.url, *program, env=env, timeout=200)
        found.append(wrong(run(SOAK, '2000', 'data')))
        found.append(wrong(run(BACKGROUND, '7', '100', '3'), 'done\n'))
        for program in CUDA:
            expected = pathlib.Path(TREE) / 'tests/programs/expected' / (pathlib.Path(program).name + '.txt')
            found.append(wrong(run(program), expected.read_text()))
        if server.said('there is no switch'):
            found.append('the server does not know the switch')
    return switch, ' '.join(filter(None, found)), time.monotonic() - began


def main():
    if '-' in os.environ.get('OUTBOARD_OPT', ''):
        skip('optimisations are off already')
    all_of_them = switches()
    check('the switches are found', len(all_of_them) > 30, all_of_them)
    sources = '\n'.join(path.read_text() for path in (pathlib.Path(TREE) / 'tests/compute').rglob('*.c'))
    for name, switch in all_of_them:
        if switch in COMPUTE:
            check(f'-{switch}: a test of the compute library turns it off', re.search(rf'\bOB_OPT_{name}\b', sources))
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(ALONE) as pool:
        rest = [switch for _, switch in all_of_them if switch not in COMPUTE]
        for switch, bad, seconds in pool.map(lambda one: turned_off(one, folder), rest):
            check(f'-{switch}: right results ({seconds:.1f} s)', not bad, bad)
    finish()


main()
