# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Tests tools/dev/gpu-check with failures: servers that are killed during a command, a program that
hangs, one that is missing, a check that is killed. All other items must still run, on a working
server, and a later call must continue where the earlier one ended.

    test_faults.py ROOT BUILD

Stand-ins replace the benchmarks and the frameworks' Python. They are copies of this file under
other names: each records that it ran and, over the wire, exits with the result of cuInit.
"""
import ctypes
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

LIMIT = 15  # time limit of an item, in seconds


def server_of_mine():
    """Returns the id of the process that listens on OUTBOARD_SERVER, a Unix socket."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(os.environ['OUTBOARD_SERVER'].partition(':')[2])
        return struct.unpack('3i', s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


def stand_in(place, words):
    """Runs as the stand-in of a program. Returns the exit code."""
    what = pathlib.Path(words[0]).name
    if what == 'outboard' and words[1:2] and words[1] not in ('msm', 'ntt', 'kzg'):
        os.execv(place / 'real-outboard', words)
    if what == 'fake-python':
        what = pathlib.Path(words[1]).name
    elif what == 'outboard':
        what = ' '.join(words[1:])
    mode = os.environ.get('OUTBOARD_SERVER', 'natively').partition(':')[0]
    with open(place / 'ran', 'a', encoding='utf-8') as log:
        log.write(f'{what}, {mode}\n')
    print('{"rows": []}' if words[0].endswith('outboard') else f'{what} prints this', flush=True)
    if mode == 'natively':
        if what == 'triton_numbers.py':
            print('skipped: there is no such package', file=sys.stderr)
            return 77
        return 0
    if (what, mode) in (('obk-gpu-bench', 'shm'), ('msm bench --from 8 --to 16 --device gpu --json', 'shm'), ('torch_numbers.py', 'shm')):
        os.kill(server_of_mine(), signal.SIGKILL)
        return 1
    if (what, mode) == ('cupy_numbers.py', 'shm'):
        time.sleep(600)  # poll: hangs until it is killed
    return ctypes.CDLL('libcuda.so.1').cuInit(0)


if len(sys.argv) < 3 or os.path.basename(sys.argv[0]) != 'test_faults.py':
    sys.exit(stand_in(pathlib.Path(os.environ['STAND_IN_PLACE']), sys.argv))

sys.path.append(sys.path[0] + '/../lib')
from outboard_test import check, finish  # noqa: E402

# What a gpu-check that is killed leaves behind. Without a space: the addresses of its servers have none.
LEFTOVERS = tempfile.TemporaryDirectory(prefix='outboard-test-')

ROOT, BUILD = map(pathlib.Path, sys.argv[1:3])


def build_with_stand_ins(place):
    """Makes a build directory of links to the real one, with stand-ins for some programs."""
    folder = place / 'build'
    for name in ('server/outboard-server', 'tests/gpu/gpu-facts', 'client-shim/libcuda.so.1', 'softdevice/liboutboard-softdevice.so'):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(BUILD / name)
    (place / 'real-outboard').symlink_to(BUILD / 'tools/outboard')
    for name in ('tests/compute/kernels/obk-gpu-bench', 'tests/compute/kernels/obk-cells-bench', 'compute/rqa/obk-rqa-bench', 'tests/gpu/gpu-rates', 'tools/outboard', 'fake-python'):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f'#!{sys.executable}\n' + pathlib.Path(__file__).read_text(encoding='utf-8'), encoding='utf-8')
        (folder / name).chmod(0o755)
    return folder


def start(place, *options):
    env = {k: v for k, v in os.environ.items() if not k.startswith('OUTBOARD_')} | {'STAND_IN_PLACE': str(place), 'TMPDIR': LEFTOVERS.name}
    return subprocess.Popen([sys.executable, ROOT / 'tools/dev/gpu-check', '-b', place / 'build', '-l', BUILD / 'softdevice/liboutboard-softdevice.so', '--no-build',
                             '-o', place / 'report.md', '--python', place / 'build/fake-python', '--item-limit', str(LIMIT), *options],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)


def gpu_check(place, *options):
    """Returns the exit code, the output, {(stage, name): row} of the counted items, the page."""
    with start(place, *options) as process:
        try:
            out = process.communicate(timeout=500)[0]
        finally:
            process.kill()
    rows = [json.loads(line) for line in (place / 'report.jsonl').read_text(encoding='utf-8').splitlines()]
    return process.returncode, out, {(r['stage'], r['name']): r for r in rows if r.get('counted')}, (place / 'report.md').read_text(encoding='utf-8')


def ran(place):
    path = place / 'ran'
    return path.read_text(encoding='utf-8').splitlines() if path.exists() else []


with tempfile.TemporaryDirectory(prefix='gpu check ') as name:
    place = pathlib.Path(name)
    build_with_stand_ins(place)
    stages = ['--stages', 'kernels,commands,frameworks']

    code, out, rows, page = gpu_check(place, *stages, '--limit', '0')
    check('what there was no time for was not reached', code == 3 and [r['reached'] for r in rows.values()] == [False] * 3 and not ran(place), out)
    check('the page says how to go on', '--resume' in page and '## Not reached' in page, page)

    with start(place, *stages, '--resume') as process:  # killed after two items
        for line in process.stdout:
            if "CUB's sort" in line:
                process.kill()
        process.communicate()
    before = ran(place)
    check('what hangs and what fails is found behind a check that was killed', before[0] == 'gpu-rates, natively', before)

    code, out, rows, page = gpu_check(place, *stages, '--resume')
    get = lambda stage, what: rows.get((stage, what), {'ok': 'not there', 'text': ''})  # noqa: E731
    check('something failed', code == 1, out)
    twice = [what for what in set(ran(place)) if ran(place).count(what) > 1]
    check('nothing is done twice, but what ran when it was killed', twice in ([], before[1:][-1:]), (before, ran(place)))
    check('a missing program', get('kernels', "CUB's sort, natively")['ok'] is False and 'No such file' in page, rows)
    killed = [get('kernels', 'products and transforms, over shm'), get('commands', 'msm bench --from 8 --to 16, over shm'), get('frameworks', 'torch, shm')]
    check('a killed server fails one thing and is named', all(r['ok'] is False and 'the server had ended with signal 9' in r['text'] for r in killed), killed)
    check('with what was printed', all('listening on' in r['output'] for r in killed) and 'prints this' in killed[0]['output'], killed)
    hung = get('frameworks', 'cupy, shm')
    check('what hangs has its limit', hung['ok'] is False and f'time is up after {LIMIT} s' in hung['text'] and hung['reached'], hung)
    behind = [*(get('kernels', f'{what}, over shm') for what in ('cell proofs', 'recurrence')), *(get('commands', f'{what}, over shm') for what in (
        'msm bench --from 17 --to 20', 'ntt bench --from 10 --to 22', 'kzg bench --blobs 64', 'kzg bench --blobs 64 --table 1536')),
        get('frameworks', 'numba, shm'), *(get('frameworks', f'{what}, tls') for what in ('torch', 'cupy', 'numba'))]
    check('all behind them ran on a server that works', all(r['ok'] is True for r in behind), behind)
    check('a missing framework is skipped, with the reason', get('frameworks', 'triton, natively')['ok'] is None and 'no such package' in page, page)
    failed = [r for r in rows.values() if r['ok'] is False and r['reached']]
    check('the page has every failure', len(failed) == 5 and page.count('\n- kernels: ') == 2 and '| kernels |' in page and len(page.splitlines()) < 60, page)
    check('and none that was not reached', 'Not reached' not in page and '--resume' not in page, page)

    before = ran(place)
    code, out, rows, page = gpu_check(place, *stages, '--resume')
    check('there is nothing left to do', code == 1 and ran(place) == before and out.count('done by an earlier run') == 3, out)
finish()
