# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Compares recurrence quantification with other programs, in one run on one series: median times,
and whether the numbers agree.

    rqa.py OUTBOARD [POINTS [RUNS [NAME,NAME]]]

The other programs are Python packages (pip install accrqa pyunicorn PyRQA; PyRQA needs an OpenCL
device, such as Debian's pocl-opencl-icd). A missing one is reported and skipped. The time of
outboard includes the start of the process and the reading of the file; the other times do not.
"""
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

M, TAU, EPS = 3, 6, 1.2


def rossler(points):
    x, y, z, out = 1.0, 1.0, 0.0, []
    for step in range(4 * points + 4000):
        x, y, z = x + 0.05 * (-y - z), y + 0.05 * (x + 0.25 * y), z + 0.05 * (0.25 + z * (x - 4))
        if step >= 4000 and step % 4 == 0:
            out.append(round(x, 6))
    return out


def outboard(program, path, preset, *more):
    command = [program, 'rqa', 'run', str(path), '--preset', preset, '--m', str(M), '--tau', str(TAU), '--eps', str(EPS), '--norm', 'l2',
               '--measures', 'RR,DET,L,ENTR,LAM,TT', '--json', *more]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)['results'][0]['measures']


def accrqa(series):
    import accrqa as module
    import numpy
    data = numpy.array(series)
    platform, distance = module.accrqaCompPlatform('cpu'), module.accrqaDistance('euclidean')

    def run():
        det = module.DET(data, TAU, M, 2, EPS, distance, True, platform, False).reshape(-1)
        lam = module.LAM(data, TAU, M, 2, EPS, distance, False, platform, False).reshape(-1)
        return {'RR': det[4], 'DET': det[0], 'L': det[1], 'ENTR': det[3], 'LAM': lam[0], 'TT': lam[1]}
    return run


def pyunicorn(series):
    import numpy
    from pyunicorn.timeseries import RecurrencePlot
    data = numpy.array(series)

    def run():
        plot = RecurrencePlot(data, metric='euclidean', threshold=EPS, dim=M, tau=TAU, silence_level=3)
        return {'RR': plot.recurrence_rate(), 'DET': plot.determinism(l_min=2), 'L': plot.average_diaglength(l_min=2),
                'ENTR': plot.diag_entropy(l_min=2), 'LAM': plot.laminarity(v_min=2), 'TT': plot.trapping_time(v_min=2)}
    return run


def pyrqa(series):
    from pyrqa.analysis_type import Classic
    from pyrqa.computation import RQAComputation
    from pyrqa.metric import EuclideanMetric
    from pyrqa.neighbourhood import FixedRadius
    from pyrqa.settings import Settings
    from pyrqa.time_series import TimeSeries
    settings = Settings(TimeSeries(series, embedding_dimension=M, time_delay=TAU), analysis_type=Classic, neighbourhood=FixedRadius(EPS),
                        similarity_measure=EuclideanMetric, theiler_corrector=1)

    def run():
        result = RQAComputation.create(settings, verbose=False).run()
        return {'RR': result.recurrence_rate, 'DET': result.determinism, 'L': result.average_diagonal_line, 'ENTR': result.entropy_diagonal_lines,
                'LAM': result.laminarity, 'TT': result.trapping_time}
    return run


def timed(run, runs):
    times, numbers = [], None
    for _ in range(runs):
        began = time.perf_counter()
        numbers = run()
        times.append(time.perf_counter() - began)
    return statistics.median(times), {name: float(value) for name, value in numbers.items()}


def main():
    program, points, runs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5000, int(sys.argv[3]) if len(sys.argv) > 3 else 5
    names = sys.argv[4].split(',') if len(sys.argv) > 4 else ('AccRQA', 'pyunicorn', 'PyRQA')
    series = rossler(points)
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name) / 'series.csv'
        path.write_text('x\n' + ''.join(f'{v:.6f}\n' for v in series))
        print(f'{points} points, m {M}, tau {TAU}, eps {EPS}, Euclidean; RR, DET, L, ENTR, LAM, TT; median of {runs} runs')
        for rival, preset, make in (('AccRQA', 'accrqa', accrqa), ('pyunicorn', 'pyunicorn', pyunicorn), ('PyRQA', 'pyrqa', pyrqa)):
            if rival not in names:
                continue
            ours, want = timed(lambda: outboard(program, path, preset), runs)
            try:
                run = make(series)
                theirs, numbers = timed(run, runs)
            except ImportError as error:
                print(f'{rival:10} not installed ({error}); ours {ours * 1e3:.1f} ms')
                continue
            except Exception as error: # report why a package does not work, and go on
                print(f'{rival:10} does not run here: {type(error).__name__}: {error}; ours {ours * 1e3:.1f} ms')
                continue
            digits = 1e-4 if rival == 'PyRQA' else 1e-6
            others = [f'{n} {numbers[n]:.9g} ours {want[n]:.9g}' for n in want if n in numbers and not math.isclose(numbers[n], want[n], rel_tol=digits)]
            wrong += bool(others)
            print(f'{rival:10} {theirs * 1e3:10.1f} ms  ours {ours * 1e3:8.1f} ms  {theirs / ours:7.1f} x  {"OTHER: " + "; ".join(others) if others else "same numbers"}')
    return 1 if wrong else 0


sys.exit(main())
