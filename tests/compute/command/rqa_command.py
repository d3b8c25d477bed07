# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Tests the output of `outboard rqa`, and its messages for every kind of bad input: they name the
file, the line and the remedy, and the other files are still processed.

    rqa_command.py OUTBOARD
"""
import csv
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
sys.path.append(sys.path[0] + '/../../lib')
from outboard_test import bad, check  # noqa: E402

OUTBOARD = sys.argv[1]
GRID = 'm=1,2 tau=1 eps=0.1,0.2 lmin=2'
WAVE = [(0.5 + 0.4 * math.sin(i / 3), 0.5 + 0.4 * math.cos(i / 5)) for i in range(60)]


def outboard(*arguments, **more):
    return subprocess.run([OUTBOARD, 'rqa', *map(str, arguments)], capture_output=True, text=True, timeout=120, **more)


def says(code, words, *arguments, where='err', **more):
    done = outboard(*arguments, **more)
    text = done.stdout if where == 'out' else done.stderr
    missing = [w for w in ([words] if isinstance(words, str) else words) if w not in text]
    check(f'{" ".join(map(str, arguments))}: exit {done.returncode} instead of {code}, or no {missing} in {text[-600:]!r} (other {done.stderr[-200:]!r})',
          done.returncode == code and not missing)
    return done


def write(path, rows, heading='x,y'):
    path.write_text('\n'.join(([heading] if heading else []) + [','.join(f'{v:.6f}' if isinstance(v, float) else str(v) for v in r) for r in rows]) + '\n')
    return path


def rows_of(path):
    with open(path, newline='') as file:
        return list(csv.DictReader(file))


def usage(at):
    file = write(at / 'u.csv', WAVE)
    says(2, 'usage: outboard rqa VERB')
    says(0, 'measures of one series', '--help', where='out')
    says(2, "no verb 'fly'", 'fly')
    says(0, 'longest diagonal line', 'measures', where='out')
    says(0, '| `--border` | none, dibo, censi, kelo |', 'options', where='out')
    for verb in ('run', 'sweep', 'plot', 'serve'):
        says(0, 'usage: outboard rqa ' + verb, verb, '--help', where='out')
        says(2, 'is missing', verb)
        says(2, 'no option --nonsense', verb, file, '--nonsense', '1')
    says(2, '--eps needs a value', 'run', file, '--eps')
    says(2, 'gaze, pyrqa', 'run', file, '--preset', 'mine')
    says(2, 'l1|l2|max', 'run', file, '--norm', 'l3')
    says(2, "no measure 'FOO'", 'run', file, '--measures', 'RR,FOO')
    says(2, 'twice', 'run', file, '--measures', 'RR,RR')
    says(2, 'whole number from 1 to', 'run', file, '--m', '0')
    says(2, 'a number from 0', 'run', file, '--eps', 'nan')
    says(2, '--out is missing', 'plot', file)


def line_ends(at):
    """Files with LF, CR, CRLF and mixed line ends give the same samples."""
    lines = ['x,y', '# a comment', '', *(f'{x},{y}' for x, y in WAVE)]

    def result(name, data):
        (at / name).write_bytes(data)
        return json.loads(says(0, '', 'run', at / name, '--m', '2', '--eps', '0.1', '--json', where='out').stdout)

    want = result('lf.csv', '\n'.join(lines).encode() + b'\n')
    for name, data in (('cr.csv', '\r'.join(lines) + '\r'), ('crlf.csv', '\r\n'.join(lines) + '\r\n'), ('open.csv', '\r'.join(lines)),
                       ('mixed.csv', ''.join(line + ('\r', '\n', '\r\n')[i % 3] for i, line in enumerate(lines, 1)))):
        have = result(name, data.encode())
        check(f'{name}: {have["samples"]} samples', (have['samples'], have['results']) == (want['samples'], want['results']))
    (at / 'cr.csv').write_bytes(b'x,y\r1,2\rabc,4\r')
    says(1, "cr.csv, line 3, column x: 'abc'", 'run', at / 'cr.csv')
    (at / 'long.csv').write_bytes(b'1' * ((1 << 20) + 1))
    says(1, 'long.csv, line 1: not a line of text', 'run', at / 'long.csv')


def rates(at):
    """--eps-unit rate: a note is printed if equal distances prevent the requested rate, and only
    then."""
    def rate_of(series, asked, test):
        distances = sorted(abs(a - b) for a in series for b in series)
        cells = len(distances)
        radius = distances[math.ceil(asked * cells) - 1] if test == 'le' else distances[math.floor(asked * cells)]
        below, up_to = sum(d < radius for d in distances) / cells, sum(d <= radius for d in distances) / cells
        return (up_to, below) if test == 'le' else (below, up_to)

    tied = [0, 1, 0, 1, 2, 0, 1, 2, 5, 5, 7]
    for series, name in ((tied, 'tied.csv'), ([x for x, _ in WAVE], 'fine.csv')):
        write(at / name, [(value,) for value in series], heading='x')
        for test in 'le', 'lt':
            reached, other = rate_of(series, 0.3, test)
            done = says(0, [], 'run', at / name, '--preset', 'accrqa', '--eps-unit', 'rate', '--eps', '0.3', '--test', test, '--json')
            (item,) = json.loads(done.stdout)['results']
            check(f'{name}, {test}: {item}', abs(item['measures']['RR'] - reached) < 1e-12)
            wanted = '' if abs(reached - 0.3) <= 1e-3 * 0.3 else (
                f'asked for the recurrence rate 0.3, reached {reached:.6g}; many distances are equal, and no radius gives a rate between '
                f'{min(reached, other):.6g} and {max(reached, other):.6g}\n')
            check(f'{name}, {test}: {done.stderr!r} lacks {wanted!r}', wanted in done.stderr if wanted else 'note' not in done.stderr)
            check(f'{name}: {reached}', bool(wanted) == (name == 'tied.csv'))
    says(0, '1D-x: note: asked for the recurrence rate', 'run', at / 'tied.csv', '--cross', at / 'tied.csv', '--modes', '1D-x', '--eps-unit', 'rate', '--eps', '0.3')
    says(0, 'second series: note', 'run', at / 'fine.csv', '--joint', write(at / 'fine2.csv', [(int(4 * x),) for x, _ in WAVE], heading='x'), '--modes', '1D-x',
         '--eps-unit', 'rate', '--eps', '0.3')


def grids(at):
    folder = at / 'grids'
    folder.mkdir()
    write(folder / 'a.csv', WAVE)
    for grid, words in (('m=1 tau=1 eps=0.1', 'no values for lmin: it is empty'), ('m= tau=1 eps=0.1 lmin=2', 'm: the list is empty'),
                        ('m=5..1 tau=1 eps=0.1 lmin=2', 'the range 5..1 is empty'), ('m=1..x tau=1 eps=0.1 lmin=2', "m: 'x' is not a number"),
                        ('m=0 tau=1 eps=0.1 lmin=2', 'm: 0 is not a whole number'), ('m=1.5 tau=1 eps=0.1 lmin=2', 'm: 1.5 is not a whole number'),
                        ('m=1 tau=1 eps=-0.1 lmin=2', 'eps: -0.1 is negative'), ('m=1 tau=1 eps=0.1..0.2 lmin=2', 'needs a step'),
                        ('m=1 tau=1 eps=0..1:0 lmin=2', 'step 0 must be greater'), ('m=1 tau=1 eps=0..1:1e-9 lmin=2', 'take larger steps'),
                        ('m=1,1 tau=1 eps=0.1 lmin=2', 'twice'), ('m=1,,2 tau=1 eps=0.1 lmin=2', 'a number is missing'),
                        ('k=1', "no 'k'"), ('m', "lacks an ="),
                        ('m=1..1000 tau=1..1000 eps=0..1:0.001 lmin=2', 'take larger steps or shorter ranges')):
        says(2, words, 'sweep', folder, '--grid', grid, '--out', at / 'grids-out')
    for index in range(200):
        write(folder / f'n{index}.csv', WAVE)
    says(1, 'take larger steps', 'sweep', folder, '--grid', 'm=1..100 tau=1..100 eps=0..1:0.001 lmin=2', '--out', at / 'grids-out')
    out = at / 'list-out'
    says(0, 'rows', 'sweep', folder, '--pattern', 'a.csv', '--grid', 'm=1,2 tau=1..3 eps=0.05..0.10:0.001 lmin=2,3', '--out', out, where='out')
    values = sorted({r['eps'] for r in rows_of(out / 'results.csv')}, key=float)
    check(f'51 thresholds as written: {values[:5]}', values == [repr(round(0.05 + 0.001 * i, 3)) for i in range(51)])


def files(at):
    folder = at / 'bad'
    (folder / 'sub').mkdir(parents=True)
    write(folder / 'good.csv', WAVE)
    write(folder / 'columns.csv', WAVE, heading='a,b')
    write(folder / 'text.csv', WAVE[:5] + [('abc', 1)] + WAVE[:5])
    write(folder / 'comma.csv', [(0.5, 0.5)], heading='x;y').write_text('x;y\n0,5;0,5\n0,6;0,7\n')
    write(folder / 'nan.csv', WAVE[:7] + [('nan', 1)] + WAVE[7:])
    write(folder / 'hole.csv', WAVE[:7] + [('', 1)] + WAVE[7:])
    write(folder / 'inf.csv', WAVE[:7] + [('inf', 1)] + WAVE[7:])
    write(folder / 'constant.csv', [(0.5, 0.5)] * 30)
    write(folder / 'short.csv', WAVE[:3])
    write(folder / 'one.csv', WAVE[:1])
    write(folder / 'ragged.csv', WAVE[:4]).open('a').write('0.5\n')
    write(folder / 'hex.csv', WAVE[:5] + [('-0X10', 1)] + WAVE[:5])
    (folder / 'hexfirst.csv').write_text('0x10\n' + ''.join(f'{x}\n' for x, _ in WAVE))  # no heading
    (folder / 'empty.csv').write_text('')
    (folder / 'binary.csv').write_bytes(b'\0\1\2' * 50)
    write(folder / 'sub' / 'n3q12.csv', WAVE)
    out = at / 'bad-out'
    done = says(1, [], 'sweep', folder, '--grid', 'm=1,3 tau=1 eps=0.1 lmin=2', '--out', out, '--json')
    counts = json.loads(done.stdout)
    check(f"bytes that the process has: {counts['memory_resident']}", 1 << 20 < counts['memory_resident'] < 1 << 34)
    reasons = {}
    for row in rows_of(out / 'failed.csv'):
        reasons.setdefault(row['file'], row)
    wanted = {
        'columns.csv': ('unreadable', ['columns.csv, line 1', 'a, b', '--columns']), 'text.csv': ('unreadable', ["text.csv, line 7, column x: 'abc' is not a number", 'correct']),
        'hex.csv': ('unreadable', ["hex.csv, line 7, column x: '-0X10' is not a number: it is hexadecimal", 'decimal']),
        'hexfirst.csv': ('unreadable', ["hexfirst.csv, line 1, column 1: '0x10' is not a number: it is hexadecimal"]),
        'comma.csv': ('unreadable', ["comma.csv, line 2, column x: '0,5'", 'point']), 'nan.csv': ('unreadable', ['nan.csv, line 9, column x', '--missing drop']),
        'hole.csv': ('unreadable', ['hole.csv, line 9', 'empty', '--missing']), 'inf.csv': ('unreadable', ['inf.csv, line 9', 'not a finite']),
        'constant.csv': ('constant', ['constant.csv, lines 2 to 31', 'never changes', '--constant allow']),
        'short.csv': ('too-short', ['short.csv ends at line 4 with 3 samples', 'm=3 and tau=1 need at least 4']), 'one.csv': ('unreadable', ['1 sample', 'at least 2']),
        'ragged.csv': ('unreadable', ['ragged.csv, line 6: 1 columns', 'remove the line']), 'empty.csv': ('unreadable', ['empty.csv, line 1: the file is empty']),
        'binary.csv': ('unreadable', ['binary.csv, line 1', 'CSV']),
    }
    for name, (error, words) in wanted.items():
        row = reasons.get(name, {'error': None, 'reason': ''})
        check(f'{name}: {row}', row['error'] == error and all(w in row['reason'] for w in words))
    check(f'failed files: {sorted(set(reasons) ^ set(wanted))}', set(reasons) == set(wanted))
    rows = rows_of(out / 'results.csv')
    check(f'{len(rows)} rows, {counts}', len(rows) == counts['total'] == 16 * 4)
    check('a failed row has no numbers', all(r['RR'] == '' and r['DET'] == '' and r['error'] for r in rows if r['status'] == 'failed'))
    check(f'good rows go on: {counts}', sum(r['status'] == 'done' for r in rows) == counts['done'] == 2 * 4 + 2)
    row = next(r for r in rows if r['file'] == 'sub/n3q12.csv')
    check(f'group, folder and question: {row}', (row['group'], row['folder'], row['q']) == ('sub', 'sub', '12'))
    words = outboard('sweep', folder, '--grid', 'm=1,3 tau=1 eps=0.1 lmin=2', '--out', out, '--fresh', '--progress', 'always')
    check(f'the last line has time and memory: {words.stdout!r}', re.search(r' failed; [\d.]+ s, [1-9]\d* MiB; results in ', words.stdout))
    check(f'progress has memory: {words.stderr[-300:]!r}', re.search(r' left, [1-9]\d* MiB  ', words.stderr))
    again = json.loads(outboard('sweep', folder, '--grid', 'm=1,3 tau=1 eps=0.1 lmin=2', '--out', out, '--json').stdout)
    check(f'done, skipped and failed are told apart: {again}', (again['done'], again['skipped'], again['failed']) == (0, counts['done'], counts['failed']))
    for option, name, code in (('--missing=drop', 'nan.csv', 0), ('--missing=gap', 'nan.csv', 0), ('--constant=allow', 'constant.csv', 0), ('--columns=a,b', 'columns.csv', 0)):
        done = says(code, '"RR":', 'run', folder / name, option, '--json', where='out')
        result = json.loads(done.stdout)
        check(f'{option}: {result}', all(r['status'] == 'done' for r in result['results']))
    says(1, 'cannot be opened', 'run', folder / 'nothing.csv')
    says(1, 'is a folder', 'run', folder)
    says(1, 'need at least 4', 'run', folder / 'short.csv', '--m', '3')
    says(1, 'never changes', 'run', folder / 'constant.csv')


def places(at):
    folder = at / 'places'
    folder.mkdir()
    says(1, 'no file that fits *.csv', 'sweep', folder, '--grid', GRID)
    says(1, 'cannot be opened', 'sweep', at / 'nowhere', '--grid', GRID)
    file = write(folder / 'a.csv', WAVE)
    says(1, 'is not a folder', 'sweep', file, '--grid', GRID)
    says(1, 'name another place with --out', 'sweep', folder, '--grid', GRID, '--out', '/proc/none')
    says(1, 'name another place with --out', 'sweep', folder, '--grid', GRID, '--out', file)
    says(1, 'cannot be written', 'run', file, '--out', '/proc/none/x.json')
    says(1, 'cannot be written', 'run', file, '--out', '/dev/full')
    # A full disk (a limit on the file size): finished rows are kept, and the same command resumes.
    out = at / 'full'
    full = subprocess.run(['sh', '-c', f'ulimit -f 8; exec "{OUTBOARD}" rqa sweep "{folder}" --grid "m=1..9 tau=1..3 eps=0.05..0.10:0.001 lmin=2,3" --out "{out}"'],
                          capture_output=True, text=True, timeout=60)
    check(f'full disk: {full.returncode} {full.stderr!r}', full.returncode == 1 and 'make room' in full.stderr and not (out / 'results.csv').exists())
    says(0, 'rows', 'sweep', folder, '--grid', 'm=1..9 tau=1..3 eps=0.05..0.10:0.001 lmin=2,3', '--out', out, where='out')
    says(1, 'other options', 'sweep', folder, '--grid', GRID, '--out', out, '--preset', 'pyrqa')
    says(0, 'rows', 'sweep', folder, '--grid', GRID, '--out', out, '--preset', 'pyrqa', '--fresh', where='out')
    (out / '.sweep.state').write_bytes(b'nonsense' * 100)
    says(1, ['damaged', '--fresh'], 'sweep', folder, '--grid', GRID, '--out', out)


def numbers(at):
    """The worked example of the PyRQA manual. Table, JSON and CSV have the same values."""
    series = [0.1, 0.5, 1.3, 0.7, 0.8, 1.4, 1.6, 1.2, 0.4, 1.1, 0.8, 0.2, 1.3]
    file = write(at / 'manual.csv', [(v,) for v in series], heading='value')
    options = ['run', file, '--preset', 'pyrqa', '--m', '2', '--tau', '2', '--eps', '0.65']
    result = json.loads(outboard(*options, '--json').stdout)['results'][0]
    for name, value in {'RR': 0.371901, 'DET': 0.411765, 'L': 2.333333, 'Lmax': 3, 'DIV': 0.333333, 'ENTR': 0.636514, 'LAM': 0.4, 'TT': 2.571429, 'Vmax': 4,
                        'Ventr': 0.955700, 'W': 2.538462, 'Wmax': 6, 'Wdiv': 0.166667, 'Wentr': 0.839796}.items():
        check(f'PyRQA manual: {name} {result["measures"][name]} instead of {value}', abs(result['measures'][name] - value) < 5e-7)
    table = rows_of_text(outboard(*options, '--csv').stdout)[0]
    check(f'CSV: {table}', float(table['DET']) == round(result['measures']['DET'], 10) and table['status'] == 'done')
    check('the table has the number', ' 0.4117647059' in outboard(*options).stdout)
    check('bare numbers on standard input',
          json.loads(outboard('run', '-', *options[2:], '--json', input='\n'.join(map(str, series))).stdout)['results'][0]['measures'] == result['measures'])
    wave = write(at / 'wave.csv', WAVE)
    modes = json.loads(outboard('run', wave, '--json').stdout)['results']
    check(f'modes of the gaze preset: {modes}', [(m['mode'], m['norm']) for m in modes] == [('2D-xy', 'l2'), ('1D-x', 'l1')])
    windows = json.loads(outboard('run', wave, '--window', '20', '--step', '10', '--modes', '1D-y', '--json').stdout)['results']
    check(f'windows: {windows}', [w['first_sample'] for w in windows] == [0, 10, 20, 30, 40])
    cross = json.loads(outboard('run', wave, '--cross', wave, '--modes', '1D-x', '--measures', 'RR,points', '--json').stdout)['results'][0]
    alone = json.loads(outboard('run', wave, '--modes', '1D-x', '--measures', 'RR,points', '--json').stdout)['results'][0]
    check(f'a series crossed with itself: {cross} {alone}', cross['measures'] == alone['measures'])


def rows_of_text(text):
    return list(csv.DictReader(text.splitlines()))


def wide(at):
    folder = at / 'wide'
    for group in ('control', 'mci'):
        (folder / group).mkdir(parents=True)
        for q in (1, 2):
            write(folder / group / f's1q{q}.csv', [(x, y / q) for x, y in WAVE])
    write(folder / 'a.csv', WAVE) # two files without a group; the groups sort between them
    write(folder / 'z.csv', WAVE)
    out = at / 'wide-out'
    says(0, 'rows', 'sweep', folder, '--grid', GRID, '--out', out, '--write', 'long,wide,folders', where='out')
    check('files of no group', len(rows_of(out / 'm2_tau1_eps0.1_lmin2' / 'RQA_1D2D_summary_all.csv')) == 2)
    long = {(r['file'], r['mode'], r['m'], r['eps']): r for r in rows_of(out / 'results.csv')}
    columns = 'filename,folder,q,RR-2D-xy,RR-1D-x,DET-2D-xy,DET-1D-x,ENT-2D-xy,ENT-1D-x'
    text = (out / 'm2_tau1_eps0.1_lmin2' / 'RQA_1D2D_summary_mci.csv').read_text().splitlines()
    check(f'columns of the eye-tracking tables: {text}', text[0] == columns and len(text) == 3)
    row = rows_of_text('\n'.join(text))[1]
    check(f'{row}', (row['filename'], row['folder'], row['q']) == ('s1q2.csv', 'mci', '2') and row['ENT-2D-xy'] == long['mci/s1q2.csv', '2D-xy', '2', '0.1']['ENTR'])
    meta = json.loads((out / 'm2_tau1_eps0.1_lmin2' / 'metadata.json').read_text())
    check(f'{meta}', meta['parameters'] == {'m': 2, 'tau': 1, 'eps': 0.1, 'lmin': 2} and meta['completed'])
    check('summary.csv', (out / 'summary.csv').read_text().splitlines()[0] == 'm,tau,eps,lmin,' + columns)
    check('rows of summary.csv', len(rows_of(out / 'summary.csv')) == 24)
    check('a folder for each combination', len([p for p in out.iterdir() if p.is_dir()]) == 4)


def main():
    os.environ.pop('OUTBOARD_SERVER', None)
    with tempfile.TemporaryDirectory() as folder:
        for part in (usage, line_ends, rates, grids, files, places, numbers, wide):
            part(pathlib.Path(folder))
    return 1 if bad else 0


sys.exit(main())
