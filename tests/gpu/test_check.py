# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Tests tools/dev/gpu-check on the software device: the quick stages run and report their results,
a missing driver is reported with what to do, a failure is recorded, and a check that is ended
leaves no server.

    test_check.py ROOT BUILD
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(sys.path[0] + '/../lib')
from outboard_test import check, finish
from shares import QUARTER, RATIO, SAME, judged

ROOT, BUILD = map(pathlib.Path, sys.argv[1:3])
SOFT = BUILD / 'softdevice/liboutboard-softdevice.so'


def command(out, *options):
    return [sys.executable, ROOT / 'tools/dev/gpu-check', '-b', BUILD, '-o', out, '--no-build', *options]


ENV = {k: v for k, v in os.environ.items() if not k.startswith('OUTBOARD_')} | {'PATH': f'{os.path.dirname(sys.executable)}:/usr/bin:/bin'}


def gpu_check(folder, *options):
    """Returns the exit code, the details and the rows of the JSON file."""
    out = folder / 'report.md'
    done = subprocess.run(command(out, *options), capture_output=True, text=True, timeout=150, env=ENV, check=False)
    text = out.with_suffix('.details.md').read_text(encoding='utf-8')
    check('the details are what was printed', text == done.stdout, done.stderr)
    return done.returncode, text, [json.loads(line) for line in out.with_suffix('.jsonl').read_text(encoding='utf-8').splitlines()]


def within(seconds, condition):
    """Waits for the condition, at most so many seconds. Returns its last result."""
    end = time.monotonic() + seconds
    while not (so := condition()) and time.monotonic() < end:
        time.sleep(0.02)  # poll
    return so


def processes_of(folder):
    """Returns the command lines of the processes whose command line contains the folder."""
    found = []
    for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
        try:
            words = path.read_bytes()
        except OSError:  # it has ended
            continue
        if os.fsencode(folder) in words:
            found.append(words)
    return found


def waiting_python(place, sign):
    """Makes a stand-in for Python that over the wire creates the file `sign` and then waits until it
    is removed. Returns its path."""
    path = place / 'waiting-python'
    path.write_text(f'#!/bin/sh\n[ -n "$OUTBOARD_SERVER" ] || exit 0\n: >"{sign}"\nwhile [ -e "{sign}" ]; do sleep 0.1; done\n', encoding='utf-8')
    path.chmod(0o755)
    return path


def ended(place, folder, number):
    """Ends a check by a signal while a program waits with its server. Returns the exit code. The
    check must leave no process, and no files unless the signal is SIGKILL."""
    folder.mkdir()
    sign = place / f'{folder.name}-waits'
    with subprocess.Popen(command(place / 'ended.md', '-l', SOFT, '--stages', 'frameworks', '--only', 'torch', '--python', waiting_python(place, sign)),
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENV | {'TMPDIR': str(folder)}) as process:
        check('there is a server to be ended', within(60, sign.exists) and any(b'outboard-server' in words for words in processes_of(folder)))
        process.send_signal(number)
        code = process.wait(60)
    sign.unlink(missing_ok=True)
    check(f'signal {number} leaves no process', within(30, lambda: not processes_of(folder)), processes_of(folder))
    check(f'signal {number} leaves no files', number == signal.SIGKILL or not list(folder.iterdir()), list(folder.iterdir()))
    return code


with tempfile.TemporaryDirectory(prefix='gpu check ') as name:
    place = pathlib.Path(name)
    code, text, rows = gpu_check(place, '-l', SOFT, '--small', '--stages', 'machine,tests,commands,facts,green,mps', '--only', 'green', '--only', 'ptx', '--only', 'self',
                                 '--only', 'slot', '--only', 'streams', '--only', 'errors', '--only', 'msm bench')
    check('all is well', code == 0, text)
    check('every stage says how long it took', [r['stage'] for r in rows if r['name'] == 'the stage'] == ['machine', 'tests', 'commands', 'facts', 'green', 'mps'], rows)
    kept = [r for r in rows if r['name'] == 'green: 0.25 beside 0.75, default']
    check('a ratio that shows no share is no success', judged('x', 1.0, 1.0, RATIO) == 'x: 1.00, which is not within 1.8 to 5' and judged('x', 6, 1, RATIO)
          and judged('x', 1, 1, QUARTER) and judged('x', 2, 1, SAME) and not judged('x', 3, 1, RATIO) and not judged('x', 0.3, 1, QUARTER) and not judged('x', 1, 1, SAME))
    check('the ratio is told', any(r['name'] == 'green: 0.25 beside 0.75, default: the ratio' and r['ok'] for r in rows), rows)
    check('shares are measured', [r['ok'] for r in kept] == [True] and 'kept by green, green' in kept[0]['text'] and 'ratio' in kept[0]['text'], kept)
    check('a stage that cannot run here says why', [r['text'] for r in rows if r['name'] == 'mps'] == ['the software device does not use MPS'], rows)
    check('nothing is told twice', len([r for r in rows if r['name'] == 'ptx: carry']) == 1, rows)
    check('a test ran on the device', any(r['name'] == 'ptx: carry' and r['ok'] and r['seconds'] > 0 for r in rows), rows)
    check('the self-test is compared', 'self-test 13002: 0, ' in text and 'NOT as computed' not in text, text)
    check('the number of a stream is found', 'slot 51 gives 0, the handle; slot 39 0, ' in text and text.count('stream object, ') == 3, text)
    check('a private function is called', any(r['name'].startswith('slot context[4]') and 'returned 0;' in r['text'] for r in rows), rows)
    reports = [r['report'] for r in rows if 'report' in r]
    check('a bench natively and over the wire', len(reports) == 2 and all(row['gpu_ms'] > 0 for report in reports for row in report['rows']), rows)
    wrong = [r for r in rows if 'forwarded' in r]
    check('wrong calls give the same over the wire', len(wrong) >= 4 and all(r['ok'] and 'waiting gives' in r['native'] for r in wrong), wrong)

    code, text, rows = gpu_check(place, '-l', '/no/such/libcuda.so.1', '--stages', 'machine')
    check('a driver that is not there is told, with what to do', code == 2 and '/no/such/libcuda.so.1 cannot be used' in text and 'with -l' in text, text)
    code, text, rows = gpu_check(place, '-l', SOFT, '--small', '--stages', 'frameworks,machine', '--only', 'torch', '--python', '/no/such/python')
    check('what fails is recorded', code == 1 and [r['ok'] for r in rows if r['name'] == 'torch, natively'] == [False], rows)
    check('and the next stage runs', any(r['name'] == 'the driver starts' and r['ok'] for r in rows), rows)
    code, text, rows = gpu_check(place, '-l', SOFT, '--small', '--stages', 'machine,tests', '--limit', '0')
    check('what there was no time for has not succeeded', code == 3 and [r['reached'] for r in rows if 'reached' in r] == [False, False], rows)
    check('a check that is asked to end does', ended(place, place / 'asked', signal.SIGTERM) == 128 + signal.SIGTERM)
    ended(place, place / 'killed', signal.SIGKILL)
finish()
