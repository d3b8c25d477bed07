# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""What a program sets in a texture reference is sent value by value, without a round trip.

    texrefs.py OUTBOARD SERVER DRIVER_TEXREFS
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
import waiting
from outboard_test import ENV, Server, check, finish

OUTBOARD, SERVER, PROGRAM = sys.argv[1:4]
RECORD = re.compile(r' (texref_\w+)\((.*)\)$')
FIELD = re.compile(r'(\w+)=(\{[^}]*\}|"[^"]*"|[^,]*)')

# The settings of driver_texrefs.c: formats(), modes(), numbers() for one reference, without the
# border of integers, which the trace cannot show.
SETTINGS = [
    ('1', '{2, 2}', '{0, 0, 0, 0}'), ('1', '{16, 4}', '{0, 0, 0, 0}'),
    ('2', '{0, 1}', '{0, 0, 0, 0}'), ('2', '{1, 2}', '{0, 0, 0, 0}'), ('2', '{2, 3}', '{0, 0, 0, 0}'),
    ('3', '{1, 0}', '{0, 0, 0, 0}'), ('4', '{0, 0}', '{0, 0, 0, 0}'),
    ('9', '{3, 0}', '{0, 0, 0, 0}'), ('9', '{48, 0}', '{0, 0, 0, 0}'),
    ('5', '{0, 0}', '{-0.75, 0, 0, 0}'), ('6', '{0, 0}', '{1.5, 7.25, 0, 0}'), ('7', '{16, 0}', '{0, 0, 0, 0}'),
    ('2', '{1, 3}', '{0, 0, 0, 0}'), ('8', '{0, 0}', '{0.25, -1, 3e+38, 0}'),
    ('2', '{0, 1}', '{0, 0, 0, 0}'), ('2', '{1, 1}', '{0, 0, 0, 0}'), ('2', '{2, 1}', '{0, 0, 0, 0}'),
]


def records(path):
    """Returns (operation, fields) of each record about a reference."""
    found = []
    with open(path, encoding='utf-8') as f:
        for line in f:
            if match := RECORD.search(line):
                found.append((match[1], dict(FIELD.findall(match[2]))))
    return found


def settings_of(ref, listed):
    return [(f['setting'], f['number'], f['real']) for name, f in listed
            if name == 'texref_set' and f['ref'] == ref and 'nan' not in f['real']]


with Server(SERVER, '--driver', 'soft') as server, tempfile.TemporaryDirectory() as folder:
    trace = os.path.join(folder, 'trace')
    done = subprocess.run([OUTBOARD, 'run', '--server', server.url, '--stats', '--trace', trace, '--', PROGRAM], capture_output=True, text=True, timeout=waiting.LONG, env=ENV)
    check('the program runs', done.returncode == 0, (done.returncode, done.stderr))
    listed = records(trace)
    opened = [(f['name'], f['kind'], f['ref']) for name, f in listed if name == 'texref_open']
    check('the references of the first module', [o[:2] for o in opened[:4]] == [('"image"', '0'), ('"first"', '0'), ('"second"', '0'), ('"screen"', '1')], opened)
    image, first, _, screen = (o[2] for o in opened[:4])
    got = settings_of(image, listed)
    check('the settings of a module\'s reference', got[:len(SETTINGS)] == SETTINGS, got)
    made = [f['ref'] for name, f in listed if name == 'texref_create']
    check('the settings of one that the program made', settings_of(made[0], listed) == SETTINGS, settings_of(made[0], listed))
    bound = [f for name, f in listed if name == 'texref_bind']
    arrays = [(f['ref'], f['type'], f['format'], f['channels'], f['array'] != '0') for f in bound if f['type'] in '01']
    want = [(image, '0', '32', '2', True), (image, '1', '9', '1', True), (first, '0', '1', '4', True), (first, '0', '32', '2', True), (screen, '0', '32', '1', True)]
    check('arrays', arrays[:5] == want, arrays)
    linear = [(f['size'], f['addr'] != '0', f['array']) for f in bound if f['type'] == '2']
    check('linear memory, and none', linear[:3] == [('4096', True, '0'), ('64', True, '0'), ('64', True, '0')] and ('0', False, '0') in linear, linear)
    addrs = [int(f['addr'], 0) for f in bound if f['type'] == '2']
    check('an address that is not aligned', (addrs[2] - addrs[0]) % 32 == 20, addrs)
    pitched = [(f['width'], f['height'], f['format'], f['channels'], int(f['pitch']) >= 64) for f in bound if f['type'] == '3']
    check('pitched memory', pitched == 2 * [('16', '8', '1', '4', True)], pitched)
    check('a parameter', [f['ref'] for name, f in listed if name == 'texref_param'] == [image])
    ended = [f['ref'] for name, f in listed if name == 'texref_destroy']
    check('references that the program ended', ended == made[:len(ended)] and len(ended) == 3 and len(made) == 4, (made, ended))
    if '-async' not in os.environ.get('OUTBOARD_OPT', '') and '-all' not in os.environ.get('OUTBOARD_OPT', ''):
        trips = re.findall(r'outboard: (texref_\w+) +\d+ +(\d+)', done.stderr)
        check('no call waits', len(trips) >= 3 and all(n == '0' for _, n in trips), done.stderr)
# Devices that compute nothing.
done = subprocess.run([OUTBOARD, 'run', '--direct', '--driver', 'dryrun', '--', PROGRAM, 'settings'], capture_output=True, text=True, timeout=waiting.LONG, env=ENV)
check('a dry run', done.returncode == 0, (done.returncode, done.stderr))
for driver in 'dryrun', 'null':
    with Server(SERVER, '--driver', driver) as server:
        done = subprocess.run([OUTBOARD, 'run', '--server', server.url, '--', PROGRAM, 'settings'], capture_output=True, text=True, timeout=waiting.LONG, env=ENV)
        check(f'a server with driver {driver}', done.returncode == 0, (done.returncode, done.stderr))
finish()
