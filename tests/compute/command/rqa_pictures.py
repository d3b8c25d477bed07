# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Tests the pictures of `outboard rqa plot`: formats, sizes, labels and ticks, the text that names
what a heat map averages, and the messages when a picture cannot be drawn.

    rqa_pictures.py OUTBOARD
"""
import math
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
sys.path.append(sys.path[0] + '/../../lib')
from outboard_test import bad, check  # noqa: E402

OUTBOARD = sys.argv[1]


def rqa(*arguments, code=0, program=OUTBOARD, **more):
    done = subprocess.run([program, 'rqa', *map(str, arguments)], capture_output=True, text=True, timeout=60, **more)
    check(f'{" ".join(map(str, arguments))}: exit {done.returncode} instead of {code}: {done.stderr[-400:]}', done.returncode == code)
    return done


def write(path, count, heading='x,y'):
    path.parent.mkdir(exist_ok=True)
    path.write_text(heading + '\n' + ''.join(f'{0.5 + 0.4 * math.sin(i / 3):.6f},{0.5 + 0.4 * math.cos(i / 5):.6f}\n' for i in range(count)))
    return path


def png_size(path):
    data = path.read_bytes()
    check(f'{path.name} is a whole PNG', data[:8] == b'\x89PNG\r\n\x1a\n' and data.endswith(b'IEND\xaeB`\x82'))
    return struct.unpack('>II', data[16:24])


class Svg:
    """An SVG file: its title, description and size."""

    def __init__(self, path):
        root = xml.etree.ElementTree.parse(path).getroot()
        space = '{http://www.w3.org/2000/svg}'
        self.title = root.find(space + 'title').text
        lines = root.find(space + 'desc').text.rstrip('\n').split('\n')
        self.subtitle = lines[0]
        self.axes = {line.split(': ')[0]: line.split(': ', 1)[1].split(';') for line in lines[1:]}
        self.size = tuple(float(root.get(k).removesuffix('px')) for k in ('width', 'height'))
        self.rectangles = sum(e.tag == space + 'path' for e in root.iter())

    def label(self, axis):
        return self.axes[axis][0]

    def ticks(self, axis):
        return self.axes[axis][1].split()


def is_nice(ticks):
    """True if the ticks are multiples of 1, 2 or 5 times a power of ten and have no more decimals
    than needed."""
    values = [float(t) for t in ticks]
    step = min(b - a for a, b in zip(values, values[1:]))
    power = 10 ** math.floor(math.log10(step) + 1e-9)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return any(abs(step / power - k) < 1e-6 for k in (1, 2, 5)) and all(abs(v / step - round(v / step)) < 1e-6 for v in values) and \
        all(len(t.partition('.')[2]) in (0, decimals) for t in ticks)


def recurrence(at):
    first, second = write(at / 'a' / 'first.csv', 137), write(at / 'a' / 'second.csv', 60)
    same = write(at / 'b' / 'first.csv', 60)
    png, svg = at / 'r.png', at / 'r.svg'
    rqa('plot', first, '--eps', '0.2', '--size', 400, '--out', png)
    rqa('plot', first, '--eps', '0.2', '--size', 400, '--out', svg)
    picture = Svg(svg)
    width, height = png_size(png)
    check(f'both formats have the same layout: {width} x {height}, {picture.size}', (width, height) == tuple(math.ceil(v) for v in picture.size))
    check(f'137 vectors are two dots each, with axes and titles around: {width} x {height}', 274 < width < 400 and 274 < height < 400)
    check(f'titles: {picture.title!r}, {picture.subtitle!r}', picture.title == 'Recurrence of first.csv, 2D-xy' and picture.subtitle == 'm=1 tau=1 eps=0.2')
    check(f'both axes have labels: {picture.axes}', (picture.label('x'), picture.label('y')) == ('vector i', 'vector j'))
    check(f'ticks: {picture.axes}', picture.ticks('x') == picture.ticks('y') == ['0', '50', '100'])
    check('cells are drawn as shapes, not as an image that viewers smooth', picture.rectangles > 100)
    rqa('plot', first, '--cross', second, '--eps', '0.2', '--out', svg)
    picture = Svg(svg)
    check(picture.title, picture.title == 'Cross recurrence of first.csv and second.csv, 2D-xy')
    check(f'{picture.axes}', (picture.label('x'), picture.label('y')) == ('vector i of first.csv', 'vector j of second.csv'))
    check(f'{picture.axes}', picture.ticks('y') == ['0', '10', '20', '30', '40', '50'])
    rqa('plot', first, '--cross', same, '--eps', '0.2', '--out', svg)
    check(f'equal names are told apart: {Svg(svg).axes}', Svg(svg).label('y') == f'vector j of {same}' and str(first) in Svg(svg).title)
    rqa('plot', write(at / 'four.csv', 4), '--eps', '0.2', '--out', svg)
    check(f'no ticks between vectors: {Svg(svg).axes}', Svg(svg).ticks('x') == Svg(svg).ticks('y') == ['0', '1', '2', '3'])
    strange = write(at / 'a' / '<a> & "b" \udcff.csv', 60)
    rqa('plot', strange, '--eps', '0.2', '--out', svg)
    check(f'a name with signs of XML and a byte that is no text: {Svg(svg).title!r}', '<a> & "b" ' in Svg(svg).title)
    done = subprocess.run([OUTBOARD, 'rqa', 'plot', first, '--eps', '0.2', '--out', '-'], capture_output=True, timeout=60)
    check('- is a PNG on standard output', done.stdout[:8] == b'\x89PNG\r\n\x1a\n')
    check('a folder that is not there', 'cannot be written' in rqa('plot', first, '--out', at / 'no' / 'such' / 'folder.png', code=1).stderr)
    rqa('plot', first, '--eps', '0.2', '--size', 16, '--out', png)
    png_size(png)
    rqa('plot', write(at / 'long.csv', 3000), '--eps', '0.2', '--mean', '--size', 1500, '--out', png)
    check('a large picture', 1500 < png_size(png)[0] < 1800)


def heat(at):
    folder, out = at / 'data', at / 'out'
    folder.mkdir()
    for name in ('s1q1', 's1q2', 's2q1'):
        write(folder / 'mci' / f'{name}.csv', 70)
    rqa('sweep', folder, '--grid', 'm=1..3 tau=1,2 eps=0.05..0.15:0.002 lmin=2,3', '--out', out)
    results, png, svg = out / 'results.csv', at / 'h.png', at / 'h.svg'

    def plot(*where):
        done = rqa('plot', results, '--heat', 'DET', '--out', svg, *where)
        return done.stderr, Svg(svg)

    said, picture = plot()
    over = '3 files, 2 modes, 2 values of tau, 2 values of lmin'
    check(f'the title and the scale name the means: {picture.title!r}, {picture.axes}', picture.title == f'mean DET over {over}' and picture.label('colours') == 'mean DET')
    check(f'the note: {said!r}', f"each cell is a mean over {over}; to split it choose one with --where, for example --where 'mode=2D-xy tau=1 lmin=2'" in said)
    check(f'{picture.axes}', (picture.label('x'), picture.label('y')) == ('eps', 'm') and picture.ticks('y') == ['1', '2', '3'])
    check(f'51 values get eleven round ones: {picture.ticks("x")}', [float(t) for t in picture.ticks('x')] == [round(0.05 + 0.01 * i, 2) for i in range(11)])
    check(f'the scale has round numbers: {picture.ticks("colours")}', is_nice(picture.ticks('colours')) and 2 <= len(picture.ticks('colours')) <= 12)
    said, picture = plot('--where', 'mode=1D-x tau=1 lmin=2 folder=mci')
    check(f'{picture.title!r} {picture.subtitle!r}', picture.title == 'mean DET over 3 files' and picture.subtitle == 'mode=1D-x tau=1 lmin=2 folder=mci')
    check(f'files are named last: {said!r}', "--where 'file=mci/s1q1.csv mode=1D-x tau=1 lmin=2 folder=mci'" in said)
    said, picture = plot('--where', 'mode=1D-x tau=1 lmin=2 file=mci/s1q1.csv')
    check(f'nothing is averaged, nothing is said: {said!r} {picture.title!r}', (said, picture.title, picture.label('colours')) == ('', 'DET', 'DET'))
    rqa('plot', results, '--heat', 'ENT', '--x', 'tau', '--y', 'lmin', '--size', 16, '--out', png)
    png_size(png)
    check('a measure that is not there', "no column 'FOO'" in rqa('plot', results, '--heat', 'FOO', '--out', png, code=1).stderr)
    check('no row fits', 'no completed row matches' in rqa('plot', results, '--heat', 'RR', '--where', 'mode=3D', '--out', png, code=1).stderr)


def missing(at):
    """Without liboutboard-plots.so everything but pictures works."""
    program = pathlib.Path(shutil.copy(OUTBOARD, at / 'outboard'))
    series = write(at / 'm.csv', 50)
    rqa('run', series, '--eps', '0.2', program=program)
    said = rqa('plot', series, '--eps', '0.2', '--out', at / 'm.png', code=1, program=program).stderr
    check(f'what is missing, and what to do, in a line: {said!r}',
          'pictures need liboutboard-plots.so' in said and 'libcairo2-dev' in said and said.count('\n') == 1 and not (at / 'm.png').exists())
    (at / 'liboutboard-plots.so').write_text('no library')
    said = rqa('plot', series, '--eps', '0.2', '--out', at / 'm.png', code=1, program=program).stderr
    check(f'a damaged one: {said!r}', 'pictures need liboutboard-plots.so: ' in said)


def main():
    with tempfile.TemporaryDirectory() as folder:
        for part in recurrence, heat, missing:
            part(pathlib.Path(folder))
    libraries = subprocess.run(['ldd', OUTBOARD], capture_output=True, text=True).stdout
    check('the command itself loads neither cairo nor pango', not re.search('cairo|pango', libraries))
    return 1 if bad else 0


sys.exit(main())
