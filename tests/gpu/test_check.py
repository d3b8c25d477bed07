# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""tools/dev/gpu-check on the software device: the stages that are quick run and say so, a driver that is not there is told in words, a failure is one.

    test_check.py ROOT BUILD
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT, BUILD = map(pathlib.Path, sys.argv[1:3])
SOFT = BUILD / 'softdevice/liboutboard-softdevice.so'
bad = []


def check(what, condition, detail=''):
    print(f'{"ok  " if condition else "FAIL"} {what}{"" if condition else ": " + str(detail)[-1500:]}', flush=True)
    if not condition:
        bad.append(what)


def gpu_check(folder, *options):
    """Exit code, the report, its lines of JSON."""
    out = folder / 'report.md'
    env = {k: v for k, v in os.environ.items() if not k.startswith('OUTBOARD_')}
    path = f'{os.path.dirname(sys.executable)}:/usr/bin:/bin'
    command = [sys.executable, ROOT / 'tools/dev/gpu-check', '-b', BUILD, '-o', out, '--no-build', *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, env=dict(env, PATH=path), check=False)
    text = out.read_text(encoding='utf-8') if out.exists() else ''
    check('the report is what was printed', text == done.stdout, done.stderr)
    return done.returncode, text, [json.loads(line) for line in out.with_suffix('.jsonl').read_text(encoding='utf-8').splitlines()]


with tempfile.TemporaryDirectory(prefix='gpu check ') as name:
    place = pathlib.Path(name)
    code, text, rows = gpu_check(place, '-l', SOFT, '--small', '--stages', 'machine,tests,facts', '--only', 'ptx', '--only', 'self', '--only', 'slot', '--only', 'errors')
    check('all is well', code == 0, text)
    check('every stage says how long it took', [r['stage'] for r in rows if r['name'] == 'the stage'] == ['machine', 'tests', 'facts'], rows)
    check('nothing is told twice', len([r for r in rows if r['name'] == 'ptx: carry']) == 1, rows)
    check('a test ran on the device', any(r['name'] == 'ptx: carry' and r['ok'] and r['seconds'] > 0 for r in rows), rows)
    check('the self-test is compared', 'self-test 13002: 0, ' in text and 'NOT as computed' not in text, text)
    check('a private function is called', any(r['name'].startswith('slot context[4]') and 'returned 0;' in r['text'] for r in rows), rows)
    wrong = [r for r in rows if 'native' in r]
    check('wrong calls give the same over the wire', len(wrong) >= 4 and all(r['ok'] and 'waiting gives' in r['native'] for r in wrong), wrong)

    code, text, rows = gpu_check(place, '-l', '/no/such/libcuda.so.1', '--stages', 'machine')
    check('a driver that is not there is told, with what to do', code == 2 and '/no/such/libcuda.so.1 cannot be used' in text and 'with -l' in text, text)
    code, text, rows = gpu_check(place, '-l', SOFT, '--small', '--stages', 'frameworks,machine', '--only', 'torch', '--python', '/no/such/python')
    check('what fails is recorded', code == 1 and [r['ok'] for r in rows if r['name'] == 'torch, natively'] == [False], rows)
    check('and the next stage runs', any(r['name'] == 'the driver starts' and r['ok'] for r in rows), rows)
    code, text, rows = gpu_check(place, '-l', SOFT, '--small', '--stages', 'machine,tests', '--limit', '0')
    check('what there was no time for has failed', code == 1 and [r['ok'] for r in rows if 'not begun' in r.get('text', '')] == [False, False], rows)
print(f'{len(bad)} wrong')
sys.exit(bool(bad))
