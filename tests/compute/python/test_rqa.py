# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Recurrence quantification against a recurrence matrix in numpy."""
import math
import unittest

import numpy as np

import outboard_compute
from outboard_compute import ArgumentError, rqa

NORMS = {'l1': 1, 'l2': 2, 'max': np.inf}


def embedded(x, m, tau):
    """The vectors (x[i], x[i + tau], ...) of all channels."""
    x = np.asarray(x, float).reshape(len(x), -1)
    n = len(x) - (m - 1) * tau
    return np.concatenate([x[k * tau:k * tau + n] for k in range(m)], axis=1)


def runs(line):
    """Lengths of the runs of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], line.astype(int), [0]])))
    return (edges[1::2] - edges[::2]).tolist()


def lines_of(lengths, least, log):
    """Share of points in lines of at least `least`, mean and largest length, entropy."""
    long = [length for length in lengths if length >= least]
    share = np.array([long.count(length) for length in set(long)]) / len(long)
    return sum(long) / sum(lengths), np.mean(long), max(lengths), -np.sum(share * log(share))


def brute(x, y=None, m=1, tau=1, eps=0.1, lmin=2, vmin=2, norm='l1', joint=False, loi=True, log=np.log2):
    """RR, DET, L, Lmax, ENTR, LAM, TT, Vmax, Ventr by definition; loi: count the main diagonal."""
    def matrix(a, b):
        return np.linalg.norm(embedded(a, m, tau)[:, None] - embedded(b, m, tau)[None], NORMS[norm], axis=2) <= eps

    r = matrix(x, x) & matrix(y, y) if joint else matrix(x, x if y is None else y)
    offsets = [k for k in range(-len(r) + 1, r.shape[1]) if loi or k]
    diagonals = [n for k in offsets for n in runs(np.diagonal(r, k))]
    if not loi:
        r = r & ~np.eye(len(r), dtype=bool)
    verticals = [n for column in r.T for n in runs(column)]
    cells = r.size - (0 if loi else len(r))
    det, mean, longest, entropy = lines_of(diagonals, lmin, log)
    lam, trapping, vmax, ventr = lines_of(verticals, vmin, log)
    return {'RR': r.sum() / cells, 'DET': det, 'L': mean, 'Lmax': longest, 'ENTR': entropy,
            'LAM': lam, 'TT': trapping, 'Vmax': vmax, 'Ventr': ventr}


def series(n, seed, channels=None):
    """A noisy oscillation in multiples of 1/64: many distances are equal, and sums are exact in any
    order."""
    noise = np.random.default_rng(seed).normal(size=n if channels is None else (n, channels))
    wave = np.sin(np.arange(n) * 0.2)
    return np.round((wave if channels is None else wave[:, None]) * 64 + noise * 16) / 64


class Analyse(unittest.TestCase):
    def compare(self, got, wanted):
        for name, value in wanted.items():
            self.assertAlmostEqual(getattr(got, name), value, delta=1e-12 * max(1, abs(value)), msg=name)

    def test_one_series(self):
        x = series(300, 1)
        for norm in NORMS:
            for m, tau, eps, lmin, vmin in (1, 1, 0.125, 2, 2), (3, 4, 0.5, 3, 4), (5, 1, 1.25, 2, 3):
                with self.subTest(norm=norm, m=m):
                    self.compare(rqa.analyse(x, m=m, tau=tau, eps=eps, lmin=lmin, vmin=vmin, norm=norm),
                                 brute(x, m=m, tau=tau, eps=eps, lmin=lmin, vmin=vmin, norm=norm))

    def test_preset_without_identity(self):
        x = series(250, 2)
        self.compare(rqa.analyse(x, m=2, tau=3, eps=0.5, preset='julia'),
                     brute(x, m=2, tau=3, eps=0.5, norm='l2', loi=False, log=np.log))

    def test_channels(self):
        x = series(200, 3, channels=3)
        self.compare(rqa.analyse(x, m=2, tau=2, eps=1.0, norm='l2'), brute(x, m=2, tau=2, eps=1.0, norm='l2'))

    def test_cross_and_joint(self):
        x, y = series(220, 4), series(180, 5)
        self.compare(rqa.analyse(x, y, m=2, eps=0.5, norm='max'), brute(x, y, m=2, eps=0.5, norm='max'))
        self.compare(rqa.analyse(x[:180], y, m=2, eps=0.5, norm='max', kind='joint'),
                     brute(x[:180], y, m=2, eps=0.5, norm='max', joint=True))

    def test_dtypes_and_layouts_give_the_same(self):
        x = series(400, 6)
        wanted = rqa.analyse(x[::2].copy(), eps=0.25)
        whole = rqa.analyse((x[::2] * 64).astype(np.int16), eps=16)
        for other in (x[::2], x[::2].astype(np.float32), x[::2].tolist(), np.asfortranarray(x[::2, None]),
                      x[::2].astype('>f8')):
            self.assertEqual(repr(rqa.analyse(other, eps=0.25)), repr(wanted))
        self.assertEqual((whole.DET, whole.ENTR), (wanted.DET, wanted.ENTR))

    def test_groups_that_are_not_wanted_are_nan(self):
        x = series(100, 7)
        self.assertTrue(math.isnan(rqa.analyse(x, eps=0.2, want='none').LAM))
        everything = rqa.analyse(x, eps=0.2, want=['vertical', 'white', 'times', 'trend', 'network'])
        self.assertFalse(any(map(math.isnan, (everything.LAM, everything.W, everything.T2, everything.TREND,
                                              everything.T))))
        self.assertEqual(repr(rqa.analyse(x, eps=0.2, want='all')), repr(everything))

    def test_measures_have_the_names_and_order_of_the_library(self):
        self.assertEqual(rqa.measure_names(), tuple(rqa.Measures.__dataclass_fields__))
        self.assertEqual(rqa.measure_index('det'), rqa.measure_names().index('DET'))
        with self.assertRaisesRegex(ArgumentError, "no measure 'foo': there are RR, DET"):
            rqa.measure_index('foo')

    def test_every_option_of_the_library_is_typed(self):
        with self.assertRaises(ArgumentError) as caught:
            rqa.analyse(series(50, 8), eps=0.1, nonsense=1)
        listed = caught.exception.text.split('there are ')[1].split()
        own = {'m', 'tau', 'eps', 'lmin'}  # separate parameters of analyse()
        call = {'timeout', 'progress', 'cancel', 'strategy', 'preset'}
        typed = {name.replace('_', '-') for name in rqa.Options.__annotations__} - call
        self.assertEqual(typed, set(listed) - own)

    def test_options_are_passed_on(self):
        x = series(150, 9)
        plain = rqa.analyse(x, eps=0.25)
        for option in ({'theiler': 5}, {'percent': 100}, {'log': 'ln'}, {'lmax_excludes_loi': True}, {'scale': 'zscore'},
                       {'theiler_diag': 3}, {'eps_unit': 'rate'}, {'test': 'lt'}, {'categorical': True}):
            with self.subTest(option=option):
                self.assertNotEqual(repr(rqa.analyse(x, eps=0.25, **option)), repr(plain))
        self.assertEqual(rqa.analyse(x, eps=0.25, theiler_rr=0, theiler=5).DET, rqa.analyse(
            x, eps=0.25, theiler_diag=5, theiler_vert=5, theiler_rr=0).DET)

    def test_errors_name_the_argument(self):
        x = series(50, 10)
        for wanted, arguments, options in (
                ('x is a complex128 array of shape .50,.: real numbers', (x + 1j,), {}),
                ('x is a float64 array of shape .2, 2, 2.', (np.zeros((2, 2, 2)),), {}),
                ('y is a <U3 array', (x, 'abc'), {}),
                ('x: sample 3 of channel 0 is not a finite', (np.where(np.arange(50) == 3, np.nan, x),), {}),
                ('m takes a whole number from 1', (x,), {'m': 0}),
                ('norm is one of l1', (x,), {'norm': 'l3'}),
                ('theiler is a list: a number', (x,), {'theiler': [1]}),
                ('timeout is -1: a number of seconds', (x,), {'timeout': -1})):
            with self.subTest(wanted=wanted), self.assertRaisesRegex(ValueError, wanted):
                rqa.analyse(*arguments, **{'eps': 0.1, **options})
        with self.assertRaises(ArgumentError) as caught:
            rqa.analyse(x[:3], m=4, eps=0.1)
        self.assertEqual((caught.exception.status, caught.exception.item),
                         (outboard_compute.Status.ARGUMENT, 0))


class Sweeps(unittest.TestCase):
    def test_rows_are_those_of_single_analyses(self):
        data = [series(120, 11, 2), series(90, 12, 2)]
        modes = [rqa.Mode('both', norm='l2'), rqa.Mode('second', (1,), 'max')]
        found = rqa.sweep(data, m=(2, 1), tau=[1, 3], eps=[0.5, 0.25], lmin=[3, 2], modes=modes, names=['a', 'b'])
        self.assertEqual((len(found), found.names, found.modes), (64, ('a', 'b'), ('both', 'second')))
        keys = [tuple(row) for row in found.table[['series', 'mode', 'm', 'tau', 'lmin', 'eps']].tolist()]
        self.assertEqual(keys, sorted(keys))
        self.assertEqual(len(set(keys)), 64)
        for row in found.table[::5]:
            mode = modes[row['mode']]
            x = data[row['series']][:, list(mode.channels)] if mode.channels else data[row['series']]
            alone = rqa.analyse(x, m=int(row['m']), tau=int(row['tau']), eps=float(row['eps']),
                                lmin=int(row['lmin']), norm=mode.norm)
            np.testing.assert_array_equal(np.array([row[name] for name in rqa.measure_names()]),
                                          np.array([getattr(alone, name) for name in rqa.measure_names()]))

    def test_a_bad_series_has_a_reason(self):
        found = rqa.sweep([series(100, 13), series(5, 14)], m=[1, 6], eps=[0.3])
        self.assertEqual(found.table['status'].tolist(), [0, 0, 0, 1])
        self.assertRegex(found.reasons[3], 'series 1 has 5 samples; m 6 with tau 1 needs')
        self.assertEqual(list(found.reasons), [3])
        self.assertTrue(math.isnan(found.table['DET'][3]))

    def test_a_set_serves_many_calls(self):
        with rqa.SeriesSet([series(80, 15), series(80, 16)], names=['x', 'y']) as held:
            self.assertEqual(len(held), 2)
            self.assertEqual(repr(held.analyse(1, eps=0.3)), repr(rqa.analyse(series(80, 16), eps=0.3)))
            self.assertEqual(repr(held.analyse(0, 1, eps=0.3)),
                             repr(rqa.analyse(series(80, 15), series(80, 16), eps=0.3)))
            with self.assertRaisesRegex(ArgumentError, 'no series 2 in the set: it has 2'):
                held.analyse(2, eps=0.3)
            with self.assertRaisesRegex(ArgumentError, 'x is -1'):
                held.analyse(-1, eps=0.3)
        with self.assertRaisesRegex(outboard_compute.OutboardError, 'set of series is closed'):
            held.analyse(eps=0.3)

    def test_wrong_grids(self):
        x = [series(60, 17)]
        for wanted, grid in (('m is a float64 array of shape .0,.: at least one', {'m': []}),
                             ('tau holds .1.5.*whole numbers', {'tau': [1.5]}),
                             ('lmin holds .-2.*whole numbers', {'lmin': [-2]})):
            with self.subTest(grid=grid), self.assertRaisesRegex(ArgumentError, wanted):
                rqa.sweep(x, eps=[0.1], **grid)
        with self.assertRaisesRegex(ArgumentError, '2 names for 1 series'):
            rqa.sweep(x, eps=[0.1], names=['a', 'b'])
        with self.assertRaisesRegex(ArgumentError, 'at least one series'):
            rqa.sweep([], eps=[0.1])


if __name__ == '__main__':
    unittest.main()
