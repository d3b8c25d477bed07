# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""How often libraries wait for the server when they start, by operation. docs/adr/0027 says why
each of these waits remains. A library that is missing, or has another version, is left out.

    library_trips.py OUTBOARD SERVER [soft]
"""
import pathlib
import re
import subprocess
import sys

sys.path.append(sys.path[0] + '/../lib')
import waiting
from outboard_test import ENV, Server, check, finish, needs

OUTBOARD, SERVER, *SOFT = sys.argv[1:]
PROGRAM = pathlib.Path(__file__).parent / 'library_start.py'
SKIPPED = 77
MORE = 4
# Version, waits of the first handle or load, waits of each further one; the hello and the goodbye
# come on top. The null driver has the attributes of a GPU, so libraries load machine code.
TRIPS = {
    'text': (1, {'module_load_checked': 1, 'func_attrs': 1, 'func_load': 1}, {}),
    'cublas': (13, {'func_attrs': 1, 'global_get': 1, 'ctx_limit': 1}, {}),
    'cufft': (12, {'mem_info': 1, 'stream_synchronize': 1, 'global_get': 3, 'func_attrs': 3}, {'mem_info': 1, 'global_get': 3}),
    'cusparse': (12, {'func_attrs': 1}, {}),
    'cudnn': (9, {'module_load_checked': 1, 'func_attrs': 1}, {}),
}
needs('async,local,trust,grant')


def waits(server, what, n):
    """{operation: round trips} of a program that starts the library n times, without hello and
    goodbye, and the library's version; None, 0 without the library."""
    done = subprocess.run([OUTBOARD, 'run', '--stats', '--server', server.url, '--', sys.executable, PROGRAM, what, str(n)], capture_output=True, text=True, env=ENV,
                          timeout=waiting.LONG)
    if done.returncode == SKIPPED:
        print(f'     {what}: {done.stdout.strip()}')
        return None, 0
    version = re.search(r'^version (\d+)', done.stdout, re.M)
    check(f'{what}, {n}: the program ends well', done.returncode == 0 and version, done.stdout + done.stderr)
    rows = re.findall(r'^outboard: (\w+) +\d+ +(\d+)', done.stderr, re.M)
    found = {name: int(trips) for name, trips in rows if int(trips) and name not in ('hello', 'bye', 'bye_link')}
    total = re.search(r'(\d+) round trips', done.stderr)
    check(f'{what}, {n}: each round trip has a name', total and int(total[1]) == sum(found.values()) + 2, done.stderr)
    return found, int(version[1]) if version else 0


def beyond(found, allowed):
    return {name: n for name, n in found.items() if n > allowed.get(name, 0)}


def count(server, what):
    version, first, further = TRIPS[what]
    one, have = waits(server, what, 1)
    if one is None:
        return
    if have != version:
        print(f'     {what}: version {have} instead of {version} is not counted')
        return
    many, _ = waits(server, what, 1 + MORE)
    check(f'{what}: the first waits for no more than {first}', not beyond(one, first), one)
    each = {name: first.get(name, 0) + MORE * further.get(name, 0) for name in many}
    check(f'{what}: each further one waits for no more than {further or "nothing"}', not beyond(many, each), many)


def main():
    with Server(SERVER, '--driver', 'null') as server:
        for what in TRIPS:
            count(server, what)
    for driver in SOFT:
        with Server(SERVER, '--driver', driver) as server:
            count(server, 'text')
    finish()


main()
