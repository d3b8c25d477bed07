# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Tests outboard msm, ntt and kzg: input and output files, the test vectors of KZG, benchmarks, the
profile, and the error messages for bad input.

    kernels_command.py OUTBOARD KZG-DATA [PART..]
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

OUTBOARD, DATA = sys.argv[1], pathlib.Path(sys.argv[2])
SETUP = str(DATA / 'trusted_setup.txt')
R = 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001
ROOT = pow(7, (R - 1) >> 32, R)
# The generator of G1 and its negative, compressed.
G = '97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb'
MINUS_G = 'b' + G[1:]
INFINITY = 'c0' + 94 * '0'
# x = 4: a point of the curve outside G1. No point of the curve has x = 1.
OUTSIDE = '80' + 92 * '0' + '04'
NO_POINT = '80' + 92 * '0' + '01'
NO_GPU = ['--device', 'gpu', '--driver', '/nonexistent/libcuda.so.1']
problems = []


def call(*args, env=None):
    return subprocess.run([OUTBOARD, *map(str, args)], capture_output=True, text=True, timeout=300, env={**os.environ, **(env or {})})


def good(*args, env=None):
    done = call(*args, env=env)
    if done.returncode != 0:
        problems.append(f'{args}: exit code {done.returncode}: {done.stderr}')
    return done.stdout


def bad(code, words, *args, env=None):
    done = call(*args, env=env)
    if done.returncode != code or any(word not in done.stderr for word in words):
        problems.append(f'{args}: exit code {done.returncode}, wanted {code} and {words} in: {done.stderr}')


def same(have, want, what):
    if have != want:
        problems.append(f'{what}: {str(have)[:200]} is not {str(want)[:200]}')


def vectors(handler):
    """Yields the tests of one handler: the name and a dictionary of fields. A field is a list of
    lists of bytes, numbers, booleans or None."""
    chunks = (DATA / 'chunks.bin').read_bytes()

    def value(word):
        if word[0] == 'x':
            return bytes.fromhex(word[1:])
        if word[0] != 'L':
            return {'null': None, 'true': True, 'false': False}.get(word, int(word) if word.isdigit() else None)
        length, runs = word[1:].split(':')
        out = b''
        for run in runs.split(','):
            at, sign, count = re.fullmatch(r'(\d+)(?:([+*])(\d+))?', run).groups()
            for i in range(int(count or 1)):
                first = 2048 * (int(at) + (i if sign == '+' else 0))
                out += chunks[first:first + 2048]
        return out[:int(length)]

    name, fields = None, {}
    for line in (DATA / 'vectors.txt').read_text().splitlines() + ['test end end']:
        words = line.split(' ')
        if words[0] == 'test':
            if name:
                yield name, fields
            name, fields = (words[2] if words[1] == handler else None), {}
        elif name:
            fields.setdefault(words[0], []).append([value(word) for word in words[2:] if word])


def msm_files(tmp):
    raw = [tmp / 'p', tmp / 's']
    made = json.loads(good('msm', 'gen', '--n', 500, '--points', raw[0], '--scalars', raw[1], '--json'))
    got = json.loads(good('msm', '--points', raw[0], '--scalars', raw[1], '--verify', '--json', '--out', tmp / 'sum'))
    same((got['points'], got['results'], got['verified']), (500, [made['sum']], True), 'the sum of generated points')
    same((tmp / 'sum').read_bytes().hex(), made['sum'][2:], 'the file of the sum')
    bar = call('msm', '--points', raw[0], '--scalars', raw[1], '--verify', env={'OUTBOARD_PROGRESS': '1'})
    same('[' in bar.stderr and '%' in bar.stderr, True, 'a bar')
    for options in ['--hex'], ['--uncompressed'], ['--hex', '--uncompressed']:
        text = [tmp / 'tp', tmp / 'ts']
        sums = [json.loads(good('msm', 'gen', '--n', 33, '--seed', 7, '--points', text[0], '--scalars', text[1], '--json', *options))['sum'],
                good('msm', '--points', text[0], '--scalars', text[1], '--uncompressed' if '--uncompressed' in options else '--hex').strip()]
        same(sums[1], sums[0], options)
    # raw little-endian scalars; two products from one file
    data = raw[1].read_bytes()
    (tmp / 'le').write_bytes(b''.join(data[i:i + 32][::-1] for i in range(0, len(data), 32)) * 2)
    same(good('msm', '--points', raw[0], '--scalars', tmp / 'le', '--le', '--batch', 2, '--trust', '--threads', 1).split(), 2 * [made['sum']], 'a batch')


def msm_small(tmp):
    def run(points, scalars, *more):
        (tmp / 'p.txt').write_text('\n'.join(points))
        (tmp / 's.txt').write_text('\n'.join(scalars))
        return ['msm', '--points', tmp / 'p.txt', '--scalars', tmp / 's.txt', *more]

    for points, scalars, want in [
        ([G], ['0x1'], G), ([G], [f'{R:x}'], INFINITY), ([G], [f'{R - 1:x}'], MINUS_G), ([G], [f'{R + 1:x}'], G), ([G], ['0'], INFINITY),
        ([INFINITY], ['5'], INFINITY), ([G, MINUS_G], ['7', '7'], INFINITY), (['0x' + G, G, G], ['2', '3', f'{R - 4:x}'], G),
        ([G, MINUS_G, INFINITY], ['2', '1', 'ff'], G), ([G], ['f' * 64], None),
    ]:
        have = good(*run(points, scalars, '--verify')).strip()
        same(have == '0x' + want if want else len(have), True if want else 98, (points, scalars, have))
    bad(1, ['point 1 ', 'subgroup'], *run([G, OUTSIDE], ['1', '1']))
    same(len(good(*run([G, OUTSIDE], ['1', '1'], '--trust', '--verify')).strip()), 98, 'a point outside G1, trusted')
    bad(1, ['point 2 ', 'curve'], *run([G, G, NO_POINT], ['1', '1', '1']))
    bad(1, ['scalar 1 ', 'not below r'], *run([G, G], ['1', f'{R:x}'], '--canonical'))
    bad(1, ['point 1 ', '96 hex digits'], *run([G, G[:-1]], ['1', '1']))
    bad(1, ['scalar 0 ', '64 hex digits'], *run([G], ['1' + 64 * '0']))
    bad(1, ['2 points', '3 scalars', '--batch 1 needs 2'], *run([G, G], ['1', '1', '1']))
    bad(1, ['is empty'], *run([], ['1']))
    bad(1, ['1 scalars', 'needs 2'], *run([G, G], ['1']))
    bad(1, ['--device gpu', 'no GPU', 'ask for "cpu"'], *run([G], ['1'], *NO_GPU))
    same(good(*run([G], ['1'], '--device', 'auto')).strip(), '0x' + G, 'auto')
    (tmp / 'short').write_bytes(bytes.fromhex(G) + b'\x80')
    bad(1, ['49 bytes', 'point 1 of 48 bytes', 'lacks 47'], 'msm', '--points', tmp / 'short', '--scalars', tmp / 's.txt')
    bad(1, ['cannot be read'], 'msm', '--points', tmp / 'nothing', '--scalars', tmp / 's.txt')
    for words, args in [('--points', []), ('there is no verb', ['fly']), ('needs a value', ['--points']), ('1 to 1024', ['--threads', '0']),
                        ('gen needs', ['gen']), ('auto, cpu or gpu', ['--device', 'tpu']), ('0 to 24', ['bench', '--to', '25']),
                        ('is above', ['bench', '--from', '9', '--to', '8'])]:
        bad(2, [words], 'msm', *args)


def profile(tmp):
    env = {'XDG_CACHE_HOME': str(tmp / 'cache')}
    run = ['msm', '--points', tmp / 'p', '--scalars', tmp / 's']
    good('msm', 'gen', '--n', 500, '--points', tmp / 'p', '--scalars', tmp / 's', env=env)
    plain = good(*run, env=env)
    tuned = json.loads(good('msm', 'tune', '--json', '--threads', 1, '--to', 8, env=env))
    same(len(tuned['windows']), 27, 'windows of the profile')
    same(all(2 <= row[kind] <= 22 for row in tuned['windows'] for kind in ('whole', 'halves')), True, 'windows in range')
    path = next((tmp / 'cache' / 'outboard').iterdir())
    same(call(*run, env=env).stderr, '', 'a sound profile is taken without a word')
    text = path.read_text()
    path.write_text(re.sub(r'for .*', 'for another processor', text))
    same('damaged' in call(*run, env=env).stderr, True, 'a changed line is noticed')
    for broken in text[:60], text.replace('halves', 'halves 9'), '', '\0' * 100, text + 'x' * 5000:
        path.write_text(broken)
        done = call(*run, env=env)
        same((done.stdout, 'damaged' in done.stderr and 'outboard msm tune' in done.stderr), (plain, True), 'a damaged profile is warned of and ignored')
    path.write_text(text)
    same(good(*run, env=env), plain, 'the same sum by a profile')
    devices = json.loads(good('msm', 'calibrate', '--seconds', 1, '--device', 'cpu:1', '--json', env=env))['devices']
    same([(d['name'], d['msm_from'], d['kzg_from'], d['rqa_from']) for d in devices], [('cpu:1', 1, 1, 1)], 'what was measured')
    same(any(p.name.startswith('profile-') for p in (tmp / 'cache' / 'outboard').iterdir()), True, 'the profile of devices')
    (tmp / 'file').write_text('')
    bad(1, ['cannot be written'], 'msm', 'tune', '--threads', 1, env={'XDG_CACHE_HOME': str(tmp / 'file')})


def transforms(tmp):
    values = [pow(3, i + 1, R) for i in range(16)]
    (tmp / 'x').write_bytes(b''.join(v.to_bytes(32, 'big') for v in values))
    w = pow(ROOT, 1 << 28, R)
    want = [sum(v * pow(5 * pow(w, k, R), j, R) for j, v in enumerate(values)) % R for k in range(16)]
    shift = f'{5:064x}'
    good('ntt', '--in', tmp / 'x', '--out', tmp / 'y', '--coset', shift, '--verify')
    y = (tmp / 'y').read_bytes()
    same([int.from_bytes(y[i:i + 32], 'big') for i in range(0, len(y), 32)], want, 'a transform on a coset')
    good('ntt', '--in', tmp / 'y', '--out', tmp / 'z', '--coset', shift, '--inverse', '--verify')
    same((tmp / 'z').read_bytes(), (tmp / 'x').read_bytes(), 'there and back')
    for order in 'nr', 'rn', 'rr':
        good('ntt', '--in', tmp / 'x', '--out', tmp / 'y', '--order', order, '--log-n', 3, '--verify', '--threads', 1)
    (tmp / 'cut').write_bytes(b'\1' * 33)
    bad(1, ['33 bytes'], 'ntt', '--in', tmp / 'cut', '--out', tmp / 'y')
    (tmp / 'large').write_bytes(bytes(32) + R.to_bytes(32, 'big'))
    bad(1, ['element 1 of'], 'ntt', '--in', tmp / 'large', '--out', tmp / 'y')
    bad(2, ['0 to 26'], 'ntt', '--in', tmp / 'x', '--out', tmp / 'y', '--log-n', 27)
    bad(1, ['--device gpu'], 'ntt', '--in', tmp / 'x', '--out', tmp / 'y', *NO_GPU)


def kzg(tmp):
    def put(name, data):
        (tmp / name).write_bytes(data)
        return tmp / name

    def ask(action, *args):
        return ['kzg', action, '--setup', SETUP, *args]

    name, case = next((n, c) for n, c in vectors('recover_cells_and_kzg_proofs') if c['output'][0][0] is not None)
    indices = ','.join(map(str, case['cell_indices'][0]))
    cells = put('cells', b''.join(case['cells'][0]))
    out = json.loads(good(*ask('recover', '--cells', cells, '--indices', indices, '--out', tmp / 'all', '--json', '--verify')))
    same((tmp / 'all').read_bytes(), b''.join(case['output'][0]), name)
    same([out[f'proof{i}'] for i in range(128)], ['0x' + p.hex() for p in case['output'][1]], name)
    bad(1, ['64'], *ask('recover', '--cells', put('few', (tmp / 'cells').read_bytes()[:2048 * 3]), '--indices', '0,1,2', '--out', tmp / 'no'))
    name, case = next((n, c) for n, c in vectors('compute_blob_kzg_proof') if c['output'][0][0] and c['output'][0][0][0] != 0xc0)
    blob, proof = put('blob', case['blob'][0][0]), '0x' + case['output'][0][0].hex()
    commitment = '0x' + case['commitment'][0][0].hex()
    same(good(*ask('commit', '--blob', blob, '--verify')).strip(), 'commitment ' + commitment, 'commit ' + name)
    same(good(*ask('prove', '--blob', blob, '--commitment', commitment, '--verify')).strip(), 'proof ' + proof, 'prove ' + name)
    two = put('two', 2 * (tmp / 'blob').read_bytes())
    same(good(*ask('commit', '--blobs', two)).split(), 2 * [commitment], 'two commitments')
    both = json.loads(good(*ask('prove', '--blobs', two, '--commitments', put('cs', 2 * case['commitment'][0][0]), '--json', '--table', 1)))
    same((both['proofs'], both['device'][:4], both['devices'][0]['failures']), (2 * [proof], 'cpu:', 0), 'two proofs')
    bad(1, ['blob 1: ', 'element 1 '], *ask('commit', '--blobs', put('bad', bytes(131072 + 32) + b'\xff' * 32 + bytes(131072 - 64))))
    good(*ask('cells', '--blob', blob, '--out', tmp / 'c', '--verify'))
    same((tmp / 'c').read_bytes()[:131072], (tmp / 'blob').read_bytes(), 'the first half of the cells')
    bad(1, ['does not verify'], *ask('prove', '--blob', blob, '--commitment', INFINITY, '--verify'))
    for batch in batches(vectors('verify_blob_kzg_proof_batch'), 2):
        case = batch[1]
        files = [put('blobs', b''.join(case['blobs'][0])), put('cs', b''.join(case['commitments'][0])), put('ps', b''.join(case['proofs'][0]))]
        done = call(*ask('verify-batch', '--blobs', files[0], '--commitments', files[1], '--proofs', files[2]))
        same((done.returncode, done.stdout.strip()), (0, 'valid') if case['output'][0][0] else (1, 'not valid'), batch[0])
    bad(2, ['items of 48 bytes'], *ask('verify-batch', '--blobs', files[0], '--commitments', put('cs', b'\xc0' + bytes(46)), '--proofs', files[2]))
    for batch in batches(vectors('verify_cell_kzg_proof_batch'), 2):
        case = batch[1]
        done = call(*ask('verify-cells', '--commitments', put('cs', b''.join(case['commitments'][0])), '--cells', put('cells', b''.join(case['cells'][0])),
                         '--indices', ','.join(map(str, case['cell_indices'][0])), '--proofs', put('ps', b''.join(case['proofs'][0]))))
        same((done.returncode, done.stdout.strip()), (0, 'valid') if case['output'][0][0] else (1, 'not valid'), batch[0])
    many_commitments(put, ask)
    bad(2, ['--indices'], *ask('verify-cells', '--commitment', commitment, '--cells', tmp / 'cells', '--proofs', tmp / 'ps'))
    bad(1, ['element 0 of the blob'], *ask('commit', '--blob', put('bad', b'\xff' * 131072)))
    bad(2, ['131072'], *ask('commit', '--blob', put('bad', b'\0' * 131071)))
    bad(1, ['--device gpu'], *ask('commit', '--blob', blob, *NO_GPU))


def many_commitments(put, ask):
    """verify-cells over two blobs, with raw commitments and with the text that `commit` prints."""
    blobs = put('blobs', b''.join(bytes(31) + bytes([i % 251 + 1]) for i in range(2 * 4096)))
    printed = good(*ask('commit', '--blobs', blobs))
    commitments = [bytes.fromhex(line[2:]) for line in printed.split()]
    cells, proofs = [], []
    for i in range(2):
        blob = put('blob', blobs.read_bytes()[i * 131072:(i + 1) * 131072])
        out = json.loads(good(*ask('cells', '--blob', blob, '--out', blobs.with_name('c'), '--json')))
        cells.append([blobs.with_name('c').read_bytes()[k * 2048:(k + 1) * 2048] for k in range(128)])
        proofs.append([bytes.fromhex(out[f'proof{k}'][2:]) for k in range(128)])
    which = [(0, 3), (1, 3), (1, 127), (0, 64)]
    some = ['--cells', put('cells', b''.join(cells[b][k] for b, k in which)), '--proofs', put('ps', b''.join(proofs[b][k] for b, k in which)),
            '--indices', ','.join(str(k) for _, k in which)]

    def told(code, word, *more):
        done = call(*ask('verify-cells', *some, *more))
        same((done.returncode, done.stdout.strip()), (code, word), more)

    told(0, 'valid', '--commitments', put('cs', b''.join(commitments[b] for b, _ in which)))
    told(0, 'valid', '--commitments', put('cs', '\n'.join(printed.split()[b] for b, _ in which).encode()))
    told(1, 'not valid', '--commitments', put('cs', b''.join(commitments[1 - b] for b, _ in which)))
    told(1, 'not valid', '--commitments', put('cs', commitments[0]))
    bad(2, ['has 2 commitments; 4 cells need one for each, or one for all'], *ask('verify-cells', *some, '--commitments', put('cs', b''.join(commitments))))
    bad(2, ['exclude each other'], *ask('verify-cells', *some, '--commitment', commitments[0].hex(), '--commitments', put('cs', commitments[0])))
    bad(2, ['--commitment or --commitments is missing'], *ask('verify-cells', *some))
    some = ['--cells', put('cells', b''.join(cells[1][5:9])), '--proofs', put('ps', b''.join(proofs[1][5:9])), '--indices', '5,6,7,8']
    told(0, 'valid', '--commitments', put('cs', commitments[1]))
    told(0, 'valid', '--commitment', commitments[1].hex())
    told(1, 'not valid', '--commitment', commitments[0].hex())


def batches(cases, most):
    """At most `most` / 2 valid cases and as many invalid ones, without refused and empty cases."""
    kinds = {True: [], False: []}
    for name, case in cases:
        verdict = case['output'][0][0]
        first = (case.get('blobs') or case.get('cells'))[0]
        if verdict is not None and first and len(kinds[verdict]) < most // 2:
            kinds[verdict].append((name, case))
    return kinds[True] + kinds[False]


def benches(tmp):
    for verb, more in ('msm', ['--from', 4, '--to', 6]), ('ntt', ['--from', 4, '--to', 6]), ('kzg', ['--setup', SETUP, '--window', 4, '--blobs', 2]):
        more = [*more, *NO_GPU[2:]]
        table = good(verb, 'bench', '--runs', 1, '--threads', 2, '--plot', tmp / 'p.svg', *more) if verb != 'kzg' else None
        report = json.loads(good(verb, 'bench', '--runs', 1, '--threads', 2, '--json', '--plot', tmp / 'p.svg', *more))
        same((report['bench'], report['machine']['threads'], report['machine']['gpu']), (verb, 2, None), 'the machine')
        same(len(report['rows']), 9 if verb == 'kzg' else 3, 'rows')
        same('nonexistent' in report['machine']['no_gpu'], True, 'why there is no GPU')
        same(all(row['cpu_ms'] > 0 and row['gpu_ms'] is None for row in report['rows']), True, 'times')
        same(table is None or bool(re.search(r'2\^6 +\d+\.\d+ +- +-', table)), True, 'the table')
        same((tmp / 'p.svg').read_text().strip()[-6:], '</svg>', 'a plot')
    bad(1, ['--device gpu'], 'msm', 'bench', *NO_GPU)
    for verb in 'msm', 'ntt', 'kzg':
        same(good(verb, 'bench', '--help').split(' [')[0].split(' --')[0], f'usage: outboard {verb} bench', 'the usage of a bench')
    done = call('msm', 'bench', '--from', 4, '--to', 4, '--runs', 1, '--device', 'cpu:1', '--stats', '--json')
    same((done.returncode, json.loads(done.stdout)['machine']['threads'], done.stderr.startswith('cpu:1: ')), (0, 1, True), 'as many threads as the list says')


def main():
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        for part in msm_files, msm_small, transforms, kzg, benches, profile:
            if len(sys.argv) > 3 and part.__name__ not in sys.argv[3:]:
                continue
            before = len(problems)
            (tmp / part.__name__).mkdir()
            part(tmp / part.__name__)
            print(part.__name__, *(problems[before:] or ['well']), sep='\n    ', flush=True)
    return bool(problems)


sys.exit(main())
