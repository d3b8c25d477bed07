# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""outboard msm, ntt, kzg and rqa lose their GPU while they work, because its server is killed. The
results must equal those of the CPU byte for byte, and the command must report what happened. The
worker is held at a driver call and killed there (OUTBOARD_FAULT, server/layers/layers.h).

    kernels_lost.py OUTBOARD SERVER KZG-DATA
"""
import json
import math
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../../lib')
import waiting  # noqa: E402
from outboard_test import Server, bad, check  # noqa: E402

OUTBOARD, SERVER, SETUP = sys.argv[1], sys.argv[2], str(pathlib.Path(sys.argv[3]) / 'trusted_setup.txt')
ENV = {k: v for k, v in os.environ.items() if not k.startswith('OUTBOARD_') or k == 'OUTBOARD_OPT'} | {'XDG_CACHE_HOME': '/nonexistent', 'OUTBOARD_TIMEOUT': '60'}

# The second text is for a loss that is noticed when the device is opened again.
ADVICE = '--device cpu|there is no GPU to count on.*ask for device cpu'


def call(*words):
    return subprocess.run([OUTBOARD, *map(str, words)], capture_output=True, text=True, timeout=200, env=ENV)


def killed(folder, words, point):
    """Runs a command on a server that is killed while its worker is held at `point`, the n-th
    driver call of a name, such as "cuLaunchKernel:4". Returns the exit code and output of the
    command, and whether the call was reached."""
    server = Server(SERVER, '--driver', 'soft', listen=f'unix:{folder}/socket', env={'OUTBOARD_FAULT': point + '=hold'})
    process = subprocess.Popen([OUTBOARD, 'run', '--server', server.url, '--', OUTBOARD, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env=ENV)
    waiting.until(lambda: process.poll() is not None or server.said('is held'))
    held = process.poll() is None and server.said('is held')
    server.process.kill()  # its workers end with it
    server.process.wait()
    try:
        out, err = process.communicate(timeout=waiting.LONG)
    finally:
        process.kill()
    return process.returncode, out, err, held


def products(tmp):
    made = json.loads(call('msm', 'gen', '--n', 1500, '--points', tmp / 'p', '--scalars', tmp / 's', '--json').stdout)['sum']
    yield ['msm', '--points', tmp / 'p', '--scalars', tmp / 's'], ('cuModuleLoadData:1', 'cuLaunchKernel:1', 'cuLaunchKernel:9', 'cuMemcpyDtoHAsync_v2:1'), lambda out: out.strip() == made


def transforms(tmp):
    dice = random.Random(3)
    (tmp / 'x').write_bytes(b''.join(b'\0' + dice.randbytes(30) + b'\0' for _ in range(1 << 17)))
    call('ntt', '--in', tmp / 'x', '--out', tmp / 'cpu', '--device', 'cpu')
    yield ['ntt', '--in', tmp / 'x', '--out', tmp / 'gpu'], ('cuLaunchKernel:1', 'cuLaunchKernel:5', 'cuMemcpyDtoHAsync_v2:3'), lambda _: (tmp / 'gpu').read_bytes() == (tmp / 'cpu').read_bytes()


def commitments(tmp):
    blob = bytearray(131072)
    for i in range(8):
        blob[32 * 77 * i + 1:32 * 77 * i + 32] = bytes([i + 1]) * 31
    (tmp / 'blob').write_bytes(blob)
    how = ['kzg', 'commit', '--setup', SETUP, '--blobs', tmp / 'blob']
    want = call(*how, '--device', 'cpu').stdout
    yield how, ('cuLaunchKernel:1', 'cuLaunchKernel:12', 'cuMemcpyDtoHAsync_v2:1'), lambda out: out == want and out.startswith('0x')


def recurrence(tmp):
    """With --device gpu the command fails and says what to do. The next run of a sweep computes the
    missing rows."""
    data = tmp / 'data'
    data.mkdir()
    for i, n in enumerate((2000, 1500, 1300)):
        rows = [f'{math.sin(0.3 * t + i):.2f},{math.cos(0.17 * t * (i + 1)):.2f}' for t in range(n)]
        (data / f's{i}.csv').write_text('x,y\n' + '\n'.join(rows) + '\n')
    code, _, err, held = killed(tmp, ['rqa', 'run', data / 's0.csv', '--m', 2, '--eps', 0.3, '--device', 'gpu'], 'cuLaunchKernel:2')
    check('rqa run: ends and says what to do', held and code == 1 and
          'outboard rqa run: 2D-xy: the GPU: GPU 0 (' in err and re.search(ADVICE, err), f'{code} {err}')
    sweep = ['rqa', 'sweep', data, '--grid', 'm=1..3 tau=1,2 eps=0.1..0.3:0.1 lmin=2,3', '--measures', 'RR,DET,ENTR,LAM,TT', '--out']
    code, out, err, held = killed(tmp, [*sweep, tmp / 'lost', '--device', 'gpu'], 'cuLaunchKernel:2')
    check('rqa sweep: likewise', held and code == 1 and
          re.search('run it again to go on, with --device cpu|' + ADVICE, err), f'{code} {err}')
    again, whole = call(*sweep, tmp / 'lost', '--device', 'cpu'), call(*sweep, tmp / 'whole', '--device', 'cpu')
    check('rqa sweep: the CPU does the rest', again.returncode == whole.returncode == 0 and 'results in' in again.stdout, again.stdout + again.stderr)
    rows = [sorted((tmp / f / 'results.csv').read_text().splitlines()) for f in ('lost', 'whole')]
    check('rqa sweep: the same rows', rows[0] == rows[1] and len(rows[0]) > 200, rows)


def main():
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        for case in products, transforms, commitments:
            for words, points, right in case(tmp):
                for point in points:
                    code, out, err, held = killed(tmp, [*words, '--device', 'gpu'], point)
                    name = ' '.join(words[:2 if words[0] == 'kzg' else 1]) + ', ' + point
                    check(f'{name}: the server was killed in the middle', held, out + err)
                    check(f'{name}: the right result all the same', code == 0 and right(out), f'{code} {out} {err}')
                    check(f'{name}: what happened is said', re.search(rf'outboard {words[0]}: gpu:0 failed \d+ times.*retries or other devices completed its work', err), err)
        recurrence(tmp)
    print(f'{len(bad)} wrong')
    return 1 if bad else 0


sys.exit(main())
