# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Tests outboard msm, ntt and kzg on a GPU: the software device, loaded directly and on a server.
The results must equal those of the CPU byte for byte.

    kernels_gpu.py OUTBOARD KZG-DATA DRIVER [SERVER]
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../../lib')
from outboard_test import ENV, Server, check, finish  # noqa: E402

OUTBOARD, SETUP, DRIVER = sys.argv[1], str(pathlib.Path(sys.argv[2]) / 'trusted_setup.txt'), sys.argv[3]
R = 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001
GPU = ['--device', 'gpu', '--driver', DRIVER]
NO_CACHE = {'XDG_CACHE_HOME': '/nonexistent'}


def call(*args, url=None, env=None):
    words = [OUTBOARD, *(['run', '--server', url, '--', OUTBOARD] if url else []), *map(str, args)]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, env={**ENV, **NO_CACHE, **(env or {})})


def good(*args, **how):
    done = call(*args, **how)
    check(' '.join(map(str, args))[:150], done.returncode == 0, f'{done.returncode} {done.stdout} {done.stderr}')
    return done


def bad(code, words, *args, **how):
    done = call(*args, **how)
    check(f'refused: {words}', done.returncode == code and all(word in done.stderr for word in words), f'{done.returncode} {done.stderr}')


def worked(text, pieces=1):
    """Parses the report of a command and checks that one GPU did all the work."""
    out = json.loads(text)
    gpu = next(d for d in out['devices'] if d['name'] == 'gpu:0')
    check('the GPU did it', out['device'] == 'gpu:0' and gpu['pieces'] >= pieces and gpu['failures'] == 0 and gpu['busy_s'] > 0, text)
    check('its memory', gpu['pool']['requests'] > 0 and gpu['pool']['peak'] >= gpu['pool']['used'], text)
    return out


def products(tmp, n):
    made = json.loads(good('msm', 'gen', '--n', n, '--points', tmp / 'p', '--scalars', tmp / 's', '--json').stdout)['sum']
    files = ['msm', '--points', tmp / 'p', '--scalars', tmp / 's']
    out = worked(good(*files, *GPU, '--json', '--verify').stdout)
    check('the sum', out['results'] == [made] and out['verified'], out)
    (tmp / 's2').write_bytes((tmp / 's').read_bytes() * 2)
    done = good('msm', '--points', tmp / 'p', '--scalars', tmp / 's2', '--batch', 2, *GPU, '--stats')
    check('a batch', done.stdout.split() == [made, made], done.stdout)
    check('statistics', re.search(r'gpu:0: .*software device.* pieces, 600 items, .*memory: peak .* MiB, .* requests served', done.stderr), done.stderr)
    mixed = json.loads(good(*files, '--device', 'gpu:0,cpu:1', '--driver', DRIVER, '--json').stdout)
    check('a GPU and a CPU', mixed['results'] == [made] and len(mixed['devices']) == 2, mixed)
    (tmp / 'large').write_bytes((tmp / 's').read_bytes()[:32] + R.to_bytes(32, 'big') + (tmp / 's').read_bytes()[64:])
    bad(1, ['scalar 1 ', 'not below r'], 'msm', '--points', tmp / 'p', '--scalars', tmp / 'large', '--canonical', *GPU)
    (tmp / 'other').write_bytes((tmp / 'p').read_bytes()[:48] + bytes.fromhex('80' + 92 * '0' + '04') + (tmp / 'p').read_bytes()[96:])
    bad(1, ['point 1 ', 'subgroup'], 'msm', '--points', tmp / 'other', '--scalars', tmp / 's', *GPU)
    bad(1, ['--device gpu:7', 'GPU 7 cannot be opened'], *files, '--device', 'gpu:7', '--driver', DRIVER)
    bad(1, ['there is no GPU to be used', 'ask for "cpu"'], *files, '--device', 'gpu', '--driver', '/nonexistent/libcuda.so.1')
    check('auto without a GPU', good(*files, '--device', 'auto', '--driver', '/nonexistent/libcuda.so.1').stdout.strip() == made)
    return files, made


def transforms(tmp):
    (tmp / 'x').write_bytes(b''.join(pow(3, i + 1, R).to_bytes(32, 'big') for i in range(1 << 10)))
    how = ['ntt', '--in', tmp / 'x', '--coset', f'{5:064x}', '--order', 'rn']
    good(*how, '--device', 'cpu', '--out', tmp / 'cpu')
    worked(good(*how, *GPU, '--verify', '--json', '--out', tmp / 'gpu').stdout)
    check('the same transform', (tmp / 'gpu').read_bytes() == (tmp / 'cpu').read_bytes())
    good(*how[:3], '--inverse', '--log-n', 6, '--device', 'cpu', '--out', tmp / 'cpu')
    good(*how[:3], '--inverse', '--log-n', 6, *GPU, '--out', tmp / 'gpu')
    check('sixteen of them', (tmp / 'gpu').read_bytes() == (tmp / 'cpu').read_bytes())
    return how


def commitments(tmp):
    """Two blobs with few nonzero elements, because the software device is slow."""
    blobs = [bytearray(131072), bytearray(131072)]
    for i in range(8):
        blobs[0][32 * 77 * i + 1:32 * 77 * i + 32] = bytes([i + 1]) * 31
        blobs[1][32 * 500 * i + 31] = i
    (tmp / 'blobs').write_bytes(b''.join(blobs))
    how = ['kzg', 'commit', '--setup', SETUP, '--blobs', tmp / 'blobs']
    out = worked(good(*how, *GPU, '--json').stdout)
    check('the same commitments', out['commitments'] == good(*how, '--device', 'cpu').stdout.split(), out)


def benches(tmp):
    for verb in 'msm', 'ntt':
        out = json.loads(good(verb, 'bench', '--from', 3, '--to', 5, '--runs', 1, '--threads', 1, '--driver', DRIVER, '--json', '--plot', tmp / 'p.svg').stdout)
        gpu = out['machine']['gpu']
        check('the GPU described', 'software device' in gpu['name'] and gpu['processors'] > 0 and gpu['memory'] > 0 and '.' in gpu['driver'], gpu)
        check('both times', len(out['rows']) == 3 and all(row['cpu_ms'] > 0 and row['gpu_ms'] > 0 and row['speed_up'] > 0 for row in out['rows']), out)
        check('two lines', (tmp / 'p.svg').read_text().count('<polyline') == 2)
    out = json.loads(good('msm', 'bench', '--from', 3, '--to', 3, '--runs', 1, '--device', 'cpu:1,gpu:0', '--driver', DRIVER, '--json').stdout)
    check('the GPU described behind a CPU', 'software device' in out['machine']['gpu']['name'], out)
    table = good('msm', 'bench', '--from', 3, '--to', 3, '--runs', 1, '--device', 'gpu:0', '--driver', DRIVER).stdout
    check('the table', re.search(r'^GPU: .*multiprocessors.*driver for CUDA', table, re.M) and re.search(r'2\^3 +\d+\.\d+ +\d+\.\d+ +\d+\.\d+', table), table)


def rows(*args, env, **how):
    done = good('msm', 'bench', '--from', 4, '--to', 5, '--runs', 1, '--threads', 1, *GPU, '--json', *args, env=env, **how)
    return [row['gpu_plan'] for row in json.loads(done.stdout)['rows']], done.stderr


def tuning(tmp, files, made):
    """The plans of products: estimated, measured and stored, with a damaged profile, with the
    profile of another device, with tuning switched off."""
    switches = os.environ.get('OUTBOARD_OPT', '') + ',tune'
    env = {'XDG_CACHE_HOME': str(tmp / 'cache'), 'OUTBOARD_OPT': switches}
    plans, said = rows(env=env)
    check('guessed', len(plans) == 2 and all(not p['measured'] and p['method'] == 'buckets' and p['copies'] == 1 and 3 <= p['window'] <= 24 and
                                             p['batch'] >= 1 and p['bytes'] > 0 and p['expected_ms'] > 0 for p in plans) and not said, (plans, said))
    out = json.loads(good('msm', 'calibrate', '--seconds', 1, '--device', 'gpu:0,cpu:1', '--driver', DRIVER, '--json', env=env).stdout)
    check('both devices', [d['name'] for d in out['devices']] == ['gpu:0', 'cpu:1'], out)
    check('scores', all(d['score'] > 0 for d in out['devices']) and out['devices'][1]['msm_from'] == 1, out)
    path, = (tmp / 'cache' / 'outboard').glob('msm-gpu-*.profile')
    measured, said = rows(env=env)
    check('measured', all(p['measured'] and p['expected_ms'] > 10 * plans[0]['expected_ms'] for p in measured) and not said, (measured, said))
    check('the same sum', good(*files, *GPU, env=env).stdout.strip() == made)
    tables, _ = rows('--table', 1, env=env)
    check('a table', all(p['measured'] and p['method'] in ('copies', 'multiples') and p['bytes'] <= 3 << 19 for p in tables), tables)
    check('switched off', not any(p['measured'] for p in rows(env={**env, 'OUTBOARD_OPT': switches + ',-tune'})[0]))
    others, said = rows(env={**env, 'OUTBOARD_SOFT_SMS': '3'})
    check('another device', not any(p['measured'] for p in others) and not said, (others, said))
    path.write_text(path.read_text().replace('windows 0', 'windows 9'))
    broken, said = rows(env=env)
    check('damaged', not any(p['measured'] for p in broken) and 'damaged' in said and 'outboard msm calibrate' in said, (broken, said))


def main():
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        files, made = products(tmp, 300)
        how = transforms(tmp)
        commitments(tmp)
        benches(tmp)
        tuning(tmp, files, made)
        if len(sys.argv) < 5:
            finish()
        with Server(sys.argv[4], '--driver', 'soft', listen=f'unix:{folder}/socket') as server:
            out = worked(good(*files, '--device', 'gpu', '--json', url=server.url).stdout)
            check('the sum over the wire', out['results'] == [made], out)
            worked(good(*how, '--device', 'gpu', '--json', '--out', tmp / 'wire', url=server.url).stdout)
            good(*how, '--device', 'cpu', '--out', tmp / 'cpu')
            check('the transform over the wire', (tmp / 'wire').read_bytes() == (tmp / 'cpu').read_bytes())
    finish()


main()
