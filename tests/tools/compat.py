# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""tools/dev/compat: which programs it calls the same, what it counts, and its exit code.

    compat.py SOURCE BUILD
"""
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
import waiting
from outboard_test import ENV, check, finish

SOURCE, BUILD = sys.argv[1:3]
INIT = f'{BUILD}/tests/e2e/e2e_init'

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)

    def script(file, text):
        (folder / file).write_text('#!/bin/sh\n' + text)
        (folder / file).chmod(0o755)

    script('same', 'echo one; echo two\n')
    script('differs', 'echo "${OUTBOARD_SERVER:-none}"\n')
    script('times', 'echo "took $$ ms"; echo step_ms $$; echo done\n')
    script('fails', 'exit 3\n')
    script('hangs', 'sleep 100\n')
    (folder / 'list').write_text('''# a comment
the same | {folder}/same |
another | {folder}/differs |
with times | {folder}/times {steps} | timing
code 3 | {folder}/fails | exit=3
code 3, unexpected | {folder}/fails |
too late | {folder}/hangs |
the driver | {init} |
''')

    def compat(*words):
        return subprocess.run([f'{SOURCE}/tools/dev/compat', BUILD, *words], capture_output=True, text=True, timeout=waiting.LONG, env=ENV)

    done = compat(str(folder / 'list'), '--folder', name, '--set', f'init={INIT}', '--timeout', '10')
    rows = dict(reversed(m) for m in re.findall(r'^(ok|FAIL) +(.*?): direct', done.stdout, re.M))
    check('each program has a line', rows == {'the same': 'ok', 'another': 'FAIL', 'with times': 'ok', 'code 3': 'ok', 'code 3, unexpected': 'FAIL', 'too late': 'FAIL',
                                              'the driver': rows.get('the driver')}, (rows, done.stdout, done.stderr))
    check('a program that uses the driver has round trips', re.search(r'the driver: .*\(\d+ round trips\)', done.stdout), done.stdout)
    check('the exit code says that something failed', done.returncode == 1, done.returncode)
    (folder / 'two').mkdir()
    script('two/devices', f'{sys.executable} -c "import ctypes as c; d = c.CDLL(\\"libcuda.so.1\\"); n = c.c_int(); d.cuInit(0); d.cuDeviceGetCount(c.byref(n)); print(n.value)"\n')
    script('two/servers', 'echo $OUTBOARD_SERVER | tr + "\\n" | sort -u | wc -l\n')
    (folder / 'pairs').write_text('''all devices | {folder}/two/devices | devices=4 | ^4$
of two servers | {folder}/two/servers | | ^ *2$
''')
    done = compat(str(folder / 'pairs'), '--folder', name, '--modes', 'two')
    check('two servers of a pool, with half of the devices each', done.returncode == 0 and '2 of 2 ok' in done.stdout and re.search(r'all devices: .*\([1-9]\d* round trips\)', done.stdout),
          (done.stdout, done.stderr))
    done = compat('-', '--folder', name, '--only', 'same')
    check('a folder without a list', done.returncode == 0 and '1 of 1 ok' in done.stdout, (done.stdout, done.stderr))
    done = compat(str(folder / 'list'), '--folder', name, '--only', 'no such program')
    check('nothing to run is an error', done.returncode != 0 and 'no program' in done.stderr, done.stderr)
    done = compat('-', '--write')
    check('--write needs a name', done.returncode == 2 and '--name' in done.stderr, done.stderr)
finish()
