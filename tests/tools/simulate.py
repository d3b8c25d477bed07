# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The simulation of a pool: what docs/BENCHMARKS.md says of the policies, rebalancing and the queue
holds in short runs, and a run can be repeated.

    simulate.py OBL_SIMULATE
"""
import re
import subprocess
import sys

sys.path.append(sys.path[0] + '/../lib')
from outboard_test import check, finish

SIMULATE = sys.argv[1]


def run(*arguments):
    return subprocess.run([SIMULATE, *arguments], capture_output=True, text=True, timeout=100)


def numbers(line):
    return [float(n) for n in re.findall(r'\d+(?:\.\d+)?', line)]


def placement():
    done = run('--load', '75', '--sessions', '20000', 'placement')
    check('placement runs', done.returncode == 0, done.stderr)
    rows = {line.split()[2]: numbers(line)[1:] for line in done.stdout.splitlines()[1:]}
    check('each policy has a row', len(rows) == 8, done.stdout)
    refused, whole = {name: row[0] for name, row in rows.items()}, {name: row[1] for name, row in rows.items()}
    check('the default refuses least', all(refused['binpack'] < refused[name] for name in rows if name != 'binpack'), done.stdout)
    check('and fewest whole GPUs', all(whole['binpack'] < whole[name] / 4 for name in rows if name != 'binpack'), done.stdout)
    again = run('--load', '75', '--sessions', '20000', 'placement')
    check('a run can be repeated', [numbers(line)[:7] for line in again.stdout.splitlines()[1:]] == [numbers(line)[:7] for line in done.stdout.splitlines()[1:]])


def skew():
    done = run('--policy', 'binpack', '--sessions', '10', '--servers', '8', 'skew')
    off, on = (numbers(line) for line in done.stdout.splitlines()[1:])
    check('rebalancing halves what is hot', on[3] < off[3] / 2, done.stdout)
    check('and what is late falls', on[4] < off[4], done.stdout)
    check('and nothing is refused for it', on[7] <= off[7] + 0.5, done.stdout)


def queue():
    done = run('queue')
    rules = dict(re.findall(r'^(first come|backfill|claims): .*\n((?:  .*\n)+)', done.stdout, re.MULTILINE))
    most = {name: {line.split('mean')[0].strip(): numbers(line.split('mean')[1])[-1] for line in text.splitlines()} for name, text in rules.items()}
    check('three rules', sorted(most) == ['backfill', 'claims', 'first come'], done.stdout)
    check('backfill starves large requests, claims do not', most['claims']['2 to 8'] < most['backfill']['2 to 8'] / 3, done.stdout)
    check('small ones hardly notice', most['claims']['part'] < most['first come']['part'] / 3, done.stdout)


def wrong():
    for arguments in ([], ['placements'], ['--servers', '1025', 'placement'], ['--gpus', '0', 'skew'], ['--policy', 'best', 'placement'],
                      ['--large', '334', 'queue'], ['--unknown', 'queue'], ['queue', 'skew']):
        done = run(*arguments)
        check('wrong arguments: ' + ' '.join(arguments), done.returncode == 2 and 'usage' in done.stderr and not done.stdout, done.stderr)
    check('help', run('--help').stdout.startswith('usage: obl-simulate'))


placement()
skew()
queue()
wrong()
finish()
