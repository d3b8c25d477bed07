# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A sweep that is killed with kill -9 at many moments and resumed gives the same files, byte for
byte, as an uninterrupted one. Also: a second sweep in the same folder is refused, Ctrl-C stops
cleanly, the progress bar on a terminal, memory that does not grow with the grid, and a changed grid
that reuses the rows that it still contains.

    rqa_resume.py OUTBOARD
"""
import json
import os
import pathlib
import pty
import random
import select
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(sys.path[0] + '/../../lib')
import waiting  # noqa: E402
from outboard_test import bad, check  # noqa: E402

OUTBOARD = sys.argv[1]
GRID = 'm=1..6 tau=1..5 eps=0.05..0.10:0.002 lmin=2,3'
SAMPLES, FILES = 700, 6


def command(folder, out, grid=GRID, *more):
    return [OUTBOARD, 'rqa', 'sweep', str(folder), '--grid', grid, '--out', str(out), '--write', 'long,wide', '--threads', '1', *more]


def finish(*arguments):
    done = subprocess.run([*command(*arguments), '--json'], capture_output=True, text=True, timeout=300)
    check(f'{arguments}: exit {done.returncode}, {done.stderr[-300:]}', done.returncode in (0, 1) and done.stdout)
    return json.loads(done.stdout)


def contents(out):
    return {p.relative_to(out).as_posix(): p.read_bytes() for p in sorted(out.rglob('*')) if p.is_file() and not p.name.startswith('.')}


def make(folder):
    rng = random.Random(7)
    folder.mkdir()
    for number in range(FILES):
        x, y, rows = 0.5, 0.5, []
        for _ in range(SAMPLES):
            x, y = min(max(x + rng.gauss(0, 0.02), 0), 1), min(max(y + rng.gauss(0, 0.02), 0), 1)
            rows.append(f'{x:.6f},{y:.6f}\n')
        (folder / f'f{number}.csv').write_text('x,y\n' + ''.join(rows))
    (folder / 'wrong.csv').write_text('x,y\n0.1,word\n')
    (folder / 'short.csv').write_text('x,y\n' + ''.join(f'0.{i},0.{9 - i}\n' for i in range(9)))


def kill_at(process, state, blocks):
    """Sends SIGKILL once the state file has `blocks` blocks on disk or the process has ended. True
    if the signal ended the process."""
    while process.poll() is None:
        if state.exists() and state.stat().st_blocks >= blocks:
            break
        waiting.let_pass(0.001, 'between two looks')
    process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def killed(at, folder, whole):
    """Kills at random moments: while files are read, while slots are written, and while results are
    written."""
    rng = random.Random(int.from_bytes(os.urandom(4), 'big'))
    most = (at / 'whole' / '.sweep.state').stat().st_blocks
    halves = attempt = 0
    # More attempts if this process was delayed so much that every sweep ended before it was killed.
    while attempt < 3 or halves == 0 and attempt < 50:
        out = at / f'killed{attempt}'
        for share in sorted([0, rng.uniform(0.1, 0.5), rng.uniform(0.5, 0.95), 1]):
            process = subprocess.Popen(command(folder, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            halves += kill_at(process, out / '.sweep.state', share * most) and not (out / 'results.csv').exists()
        counts = finish(folder, out)
        check(f'nothing was kept: {counts}', counts['skipped'] > 0)
        check(f'attempt {attempt}: other bytes after kill -9 and resume ({counts})', contents(out) == whole)
        check(f'{counts}', counts['done'] + counts['skipped'] + counts['failed'] == counts['total'])
        attempt += 1
    check('no run was killed before its end: nothing was tested', halves)
    print(f'{halves} runs in {attempt} folders were killed before their results were written')
    # A state file that is truncated and has a wrong byte: the slots concerned are computed again.
    state = out / '.sweep.state'
    data = bytearray(state.read_bytes())
    data[len(data) // 2] ^= 0x10
    state.write_bytes(data[:len(data) * 3 // 4])
    counts = finish(folder, out)
    check(f'a damaged slot: {counts}', counts['done'] > 0 and counts['skipped'] > 0 and contents(out) == whole)


def stopped(at, folder, whole):
    out = at / 'stopped'
    first = subprocess.Popen(command(folder, out), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    waiting.until(lambda: (out / '.sweep.state').exists() or first.poll() is not None, every=0.005)
    second = subprocess.run(command(folder, out), capture_output=True, text=True, timeout=60)
    if first.poll() is None:
        check(f'two sweeps in one folder: {second.returncode} {second.stderr[-200:]}', second.returncode == 1 and 'another sweep is writing' in second.stderr)
    first.send_signal(signal.SIGINT)
    text = first.communicate(timeout=waiting.LONG)[1]
    check(f'Ctrl-C: {first.returncode} {text[-200:]}', first.returncode in (130, 1) and (first.returncode == 1 or 'go on from here' in text))
    finish(folder, out)
    check('other bytes after Ctrl-C and resume', contents(out) == whole)


def bars_of(at, folder, taus):
    """The progress bars that a sweep over `taus` delays draws on a terminal, and all its output."""
    main, side = pty.openpty()
    process = subprocess.Popen(command(folder, at / f'terminal{taus}', GRID.replace('tau=1..5', f'tau=1..{taus}')), stdout=subprocess.DEVNULL, stderr=side)
    os.close(side)
    text = b''
    while select.select([main], [], [], waiting.LONG)[0]:
        try:
            data = os.read(main, 65536)
        except OSError:
            break
        if not data:
            break
        text += data
    os.close(main)
    process.wait(waiting.LONG)
    return [p for p in text.decode(errors='replace').split('\r') if p.startswith('[')], text


def terminal(at, folder):
    """The bar is redrawn ten times a second. A sweep that ends before the third bar is repeated
    with more delays."""
    taus = 5
    bars, text = bars_of(at, folder, taus)
    while len(bars) < 3 and taus < 1000:
        taus *= 2
        bars, text = bars_of(at, folder, taus)
    check(f'a bar that is redrawn: {text[:300]!r}', len(bars) > 2 and all(' left' in b and ' %' in b for b in bars))
    shares = [float(b.split(']')[1].split('%')[0]) for b in bars if 'rows' in b]
    check(f'it only grows: {shares}', shares == sorted(shares))


def memory(at, folder):
    def most(grid, name):
        process = subprocess.Popen([OUTBOARD, 'rqa', 'sweep', str(folder), '--threads', '1', '--pattern', 'f[01].csv', '--grid', grid, '--out', str(at / name)],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        peak = 0
        # VmHWM, because ru_maxrss of wait4 includes the Python process before exec.
        while process.poll() is None:
            try:
                text = pathlib.Path(f'/proc/{process.pid}/status').read_text()
                peak = max([peak] + [int(line.split()[1]) for line in text.splitlines() if line.startswith('VmHWM') and 'outboard' in text])
            except OSError:
                pass
            waiting.let_pass(0.001, 'between two looks')
        check(f'{name}: exit {process.returncode}', process.returncode == 0 and peak)
        return peak / 1024

    few, many = most('m=1,2 tau=1,2 eps=0.05,0.1 lmin=2,3', 'few'), most('m=1..10 tau=1..10 eps=0.05..0.10:0.01 lmin=2,3', 'many')
    print(f'memory: {few:.1f} MiB for 16 combinations, {many:.1f} MiB for 1,200')
    # A sanitizer keeps freed memory for a while, so the figure is not checked under one.
    check('memory grows with the grid', many < few + 8 or 'ASAN_OPTIONS' in os.environ or 'TSAN_OPTIONS' in os.environ)


def other_grids(at, folder):
    out = at / 'grown'
    finish(folder, out, 'm=1..3 tau=1..2 eps=0.05,0.06,0.1 lmin=2,3')
    counts = finish(folder, out, 'm=1..4 tau=1..3 eps=0.1,0.05 lmin=3')
    fresh = at / 'fresh'
    finish(folder, fresh, 'm=1..4 tau=1..3 eps=0.1,0.05 lmin=3')
    check(f'what fits is taken over: {counts}', counts['skipped'] == FILES * 2 * 3 * 2 * 2 + 2 * 2 * (3 * 2))
    check('a grown grid gives the files of a fresh one', contents(out) == contents(fresh))
    (folder / 'f0.csv').write_text((folder / 'f0.csv').read_text().replace('x,y\n', 'x,y\n0.123456,0.654321\n'))
    counts = finish(folder, out, 'm=1..4 tau=1..3 eps=0.1,0.05 lmin=3')
    check(f'a changed file is computed again, the others are not: {counts}', counts['done'] == 2 * 12 * 2)


def main():
    with tempfile.TemporaryDirectory() as name:
        at = pathlib.Path(name)
        folder = at / 'data'
        make(folder)
        began = time.monotonic()
        counts = finish(folder, at / 'whole')
        seconds = time.monotonic() - began
        print(f'in one piece: {counts["total"]} rows in {seconds:.2f} s')
        whole = contents(at / 'whole')
        check(f'{counts}', counts['failed'] == 1 * 2 * 1560 + sum(2 * 52 for m in range(1, 7) for t in range(1, 6) if (m - 1) * t + 2 > 9))
        killed(at, folder, whole)
        stopped(at, folder, whole)
        terminal(at, folder)
        memory(at, folder)
        other_grids(at, folder)
    return 1 if bad else 0


sys.exit(main())
