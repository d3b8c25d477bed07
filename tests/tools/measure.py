# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""tools/dev/measure prints every row that was asked for, and says so when a row cannot be measured.
It does not judge the figures.

    measure.py SOURCE BUILD
"""
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
from outboard_test import ENV, check, finish  # noqa: E402

SOURCE, BUILD = map(pathlib.Path, sys.argv[1:])


def measure(*words):
    return subprocess.run([SOURCE / 'tools' / 'dev' / 'measure', '--rounds', '1', '--cores', '0', *map(str, words)], capture_output=True, text=True, timeout=300, env=ENV)


done = measure('--rows', 'allocate,polling,sessions', BUILD)
last = done.stdout.strip().split('\n')[-1]
check('all rows have a value', done.returncode == 0 and re.search(r'^10 rows: .* 0 failed$', last), done.stdout + done.stderr)
for text in 'cuEventQuery until ready: round trips of a query', 'allocate and free, driver without virtual memory management':
    check(f'row: {text}', re.search(re.escape(text) + r'.* [\d.,]+ .*(met|missed)$', done.stdout, re.M), done.stdout)
check('sessions: bare streams are measured too', re.search(r'farthest from the mean( +[\d.,]+| +–){3} +[\d.]+  ≤ 0.2, (met|missed)$', done.stdout, re.M), done.stdout)

done = measure('--rows', 'allocate', '--base-opt=-grant', BUILD)
check('switches of the base build need no second build', done.returncode == 0 and 'FAILED' not in done.stdout, done.stdout + done.stderr)

with tempfile.TemporaryDirectory() as name:
    broken = pathlib.Path(name)
    for folder in 'client-shim', 'tools':
        (broken / folder).symlink_to(BUILD / folder)
    (broken / 'server').mkdir()
    (broken / 'server' / 'outboard-server').symlink_to('/bin/false')
    done = measure('--rows', 'allocate', '--base', broken, BUILD)
    check('a build whose server does not start: no row is left out', len(re.findall('FAILED$', done.stdout, re.M)) == 3, done.stdout + done.stderr)
    check('the reason is printed', 'failed: before, allocate: the server did not start' in done.stdout, done.stdout)
    check('the exit code says so', done.returncode == 1, done.returncode)
    done = measure('--rows', 'allocate', broken / 'nothing')
    check('no build: a usage error', done.returncode == 2 and 'name the folder of a build' in done.stderr, done.stderr)
done = measure('--rows', 'allocate,speed', BUILD)
check('no such row: a usage error that lists the rows', done.returncode == 2 and 'no rows are called speed' in done.stderr and 'sessions' in done.stderr, done.stderr)
done = measure('--rows', 'allocate', '--write', BUILD)
check('a part of the table is not written', done.returncode == 2 and '--write needs all rows' in done.stderr, done.stderr)
finish()
