# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""outboard msm, ntt, kzg and rqa whose GPU goes away in the middle of their work, with the server that has it: the files have the CPU's bytes all the same, and what
happened is said.

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
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'e2e'))
from house import Server, bad, check  # noqa: E402

OUTBOARD, SERVER, SETUP = sys.argv[1], sys.argv[2], str(pathlib.Path(sys.argv[3]) / 'trusted_setup.txt')
ENV = {k: v for k, v in os.environ.items() if not k.startswith('OUTBOARD_') or k == 'OUTBOARD_OPT'} | {'XDG_CACHE_HOME': '/nonexistent'}

ADVICE = '--device cpu|there is no GPU to count on.*ask for device cpu'  # by whether the loss is seen by a kernel or by what asks for the device after it


def call(*words):
    return subprocess.run([OUTBOARD, *map(str, words)], capture_output=True, text=True, timeout=200, env=ENV)


def busy(pid):
    """Seconds of processor time that a process has had; None when it is gone."""
    try:
        fields = pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def killed(folder, words, seconds):
    """Runs a command on a server, which is killed when its worker has worked for so long. What the command did; whether it was still under way then."""
    server = Server(SERVER, f'unix:{folder}/socket', '--driver', 'soft')
    process = subprocess.Popen([OUTBOARD, 'run', '--server', server.url, '--', OUTBOARD, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env=ENV)
    end = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < end:
        workers = server.workers()
        if workers and (busy(workers[-1]) or 0) >= seconds:
            break
        time.sleep(0.01)
    under_way = process.poll() is None
    server.process.kill()  # the workers go with it
    server.process.wait()
    try:
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    return process.returncode, out, err, under_way


def products(tmp):
    made = json.loads(call('msm', 'gen', '--n', 1500, '--points', tmp / 'p', '--scalars', tmp / 's', '--json').stdout)['sum']
    yield ['msm', '--points', tmp / 'p', '--scalars', tmp / 's'], 0.2, lambda out: out.strip() == made


def transforms(tmp):
    dice = random.Random(3)
    (tmp / 'x').write_bytes(b''.join(b'\0' + dice.randbytes(30) + b'\0' for _ in range(1 << 17)))
    call('ntt', '--in', tmp / 'x', '--out', tmp / 'cpu', '--device', 'cpu')
    yield ['ntt', '--in', tmp / 'x', '--out', tmp / 'gpu'], 0.1, lambda _: (tmp / 'gpu').read_bytes() == (tmp / 'cpu').read_bytes()


def commitments(tmp):
    blob = bytearray(131072)
    for i in range(8):
        blob[32 * 77 * i + 1:32 * 77 * i + 32] = bytes([i + 1]) * 31
    (tmp / 'blob').write_bytes(blob)
    how = ['kzg', 'commit', '--setup', SETUP, '--blobs', tmp / 'blob']
    want = call(*how, '--device', 'cpu').stdout
    yield how, 0.1, lambda out: out == want and out.startswith('0x')


def recurrence(tmp):
    """It was told to use the GPU, and says what to do now; a sweep goes on with the rows that are missing."""
    data = tmp / 'data'
    data.mkdir()
    for i, n in enumerate((2000, 1500, 1300)):
        rows = [f'{math.sin(0.3 * t + i):.2f},{math.cos(0.17 * t * (i + 1)):.2f}' for t in range(n)]
        (data / f's{i}.csv').write_text('x,y\n' + '\n'.join(rows) + '\n')
    # long enough for seconds of work, of which getting there, whatever the machine, is a small part
    long = tmp / 'long.csv'
    long.write_text('x,y\n' + '\n'.join(f'{math.sin(0.3 * t):.2f},{math.cos(0.17 * t):.2f}' for t in range(10000)) + '\n')
    code, _, err, under_way = killed(tmp, ['rqa', 'run', long, '--m', 2, '--eps', 0.3, '--device', 'gpu'], 0.5)
    check('rqa run: ends and says what to do', under_way and code == 1 and
          'outboard rqa run: 2D-xy: the GPU: GPU 0 (' in err and re.search(ADVICE, err), f'{code} {err}')
    sweep = ['rqa', 'sweep', data, '--grid', 'm=1..3 tau=1,2 eps=0.1..0.3:0.1 lmin=2,3', '--measures', 'RR,DET,ENTR,LAM,TT', '--out']
    code, out, err, under_way = killed(tmp, [*sweep, tmp / 'lost', '--device', 'gpu'], 0.3)
    check('rqa sweep: likewise', under_way and code == 1 and
          re.search('run it again to go on, with --device cpu|' + ADVICE, err), f'{code} {err}')
    again, whole = call(*sweep, tmp / 'lost', '--device', 'cpu'), call(*sweep, tmp / 'whole', '--device', 'cpu')
    check('rqa sweep: the CPU does the rest', again.returncode == whole.returncode == 0 and 'results in' in again.stdout, again.stdout + again.stderr)
    rows = [sorted((tmp / f / 'results.csv').read_text().splitlines()) for f in ('lost', 'whole')]
    check('rqa sweep: the same rows', rows[0] == rows[1] and len(rows[0]) > 200, rows)


def main():
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        for case in products, transforms, commitments:
            for words, seconds, right in case(tmp):
                code, out, err, under_way = killed(tmp, [*words, '--device', 'gpu'], seconds)
                name = ' '.join(words[:2 if words[0] == 'kzg' else 1])
                check(f'{name}: the server was killed in the middle', under_way, out + err)
                check(f'{name}: the right result all the same', code == 0 and right(out), f'{code} {out} {err}')
                check(f'{name}: what happened is said', re.search(rf'outboard {words[0]}: gpu:0 failed \d+ times.*other attempts or devices did its work', err), err)
        recurrence(tmp)
    print(f'{len(bad)} wrong')
    return 1 if bad else 0


sys.exit(main())
