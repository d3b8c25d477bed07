# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Recurrence quantification analysis (RQA) of time series.

Options and measures have the names of the `outboard rqa` command, with _ in place of -;
compute/docs/RQA.md explains each. No recurrence matrix is stored, so series of a million samples
are possible.
"""
from __future__ import annotations

import contextlib
import ctypes
import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _abi
from ._arrays import contiguous, given, refuse
from ._calls import CallOptions, run
from ._handles import Core, Handle
from ._library import call, lib
from .context import Context, default_context
from .errors import CancelledError

Preset = Literal['gaze', 'pyrqa', 'pyunicorn', 'pyunicorn-0.5', 'julia', 'julia-0.3', 'accrqa', 'crp',
                 'crqa', 'rp', 'nonlineartseries', 'fixations']
Norm = Literal['l1', 'l2', 'max', 'gaze']


class Options(CallOptions, total=False):
    """Options of an analysis. An option that is left out has the value of the preset.

    want: the groups of measures to compute, of vertical, white, times, trend and network; "all";
    "none". Default: vertical.
    """

    preset: Preset
    want: str | Sequence[str]
    kind: Literal['auto', 'cross', 'joint']
    eps_y: float
    eps_unit: Literal['absolute', 'sd', 'max', 'mean', 'rate']
    vmin: int
    wmin: int
    norm: Norm
    norm_y: Norm
    test: Literal['le', 'lt']
    precision: Literal['auto', 'f64', 'f32']
    scale: Literal['none', 'zscore', 'unit']
    categorical: bool
    missing: Literal['error', 'gap']
    theiler: int
    theiler_rr: int
    theiler_diag: int
    theiler_vert: int
    theiler_white: int
    triangle: Literal['both', 'upper', 'lower']
    rr_denominator: Literal['full', 'valid']
    det_denominator: Literal['lines', 'points']
    lam_denominator: Literal['lines', 'points']
    lmax_excludes_loi: bool
    log: Literal['ln', 'log2']
    entropy_norm: Literal['plain', 'log-n', 'log-bins']
    entropy_all: bool
    white: Literal['all', 'inner']
    border: Literal['none', 'dibo', 'censi', 'kelo']
    border_semi: bool
    times: Literal['white', 'start', 'midpoint']
    trend: Literal['fit', 'weighted']
    trend_margin: int
    transitivity: Literal['triples', 'paths']
    percent: float
    quirk_last_column: bool


@dataclass(frozen=True)
class Measures:
    """The measures of one analysis. A measure that is undefined or was not requested is NaN."""

    RR: float
    DET: float
    L: float
    Lmax: float
    DIV: float
    ENTR: float
    RATIO: float
    TREND: float
    LAM: float
    TT: float
    Vmax: float
    Ventr: float
    W: float
    Wmax: float
    Wdiv: float
    Wentr: float
    T1: float
    T2: float
    MRT: float
    RTE: float
    NMPRT: float
    T: float
    C: float
    CORM: float
    rENTR: float
    radius: float
    n: float
    points: float


@dataclass(frozen=True)
class Mode:
    """A selection of channels and a norm, which a sweep applies to each series.

    channels: indices from 0; empty: all channels. norm: None: the norm of the options.
    """

    name: str
    channels: tuple[int, ...] = ()
    norm: Norm | None = None


def measure_names() -> tuple[str, ...]:
    """The names of the measures in the library's order, which is that of `Measures`."""
    return tuple(lib.outboard_rqa_measure_name(i).decode() for i in range(lib.outboard_rqa_measure_count()))


def measure_index(name: str) -> int:
    """The index of a measure. Case matters only between names that differ in nothing else."""
    index = int(lib.outboard_rqa_measure_find(name.encode()))
    if index < 0:
        raise refuse(f'there is no measure {name!r}: there are {", ".join(measure_names())}')
    return index


# ---- options ----

_CALL = frozenset(CallOptions.__annotations__)


def _text(name: str, value: object) -> bytes:
    """The value of an option as the C library reads it."""
    if isinstance(value, (bool, np.bool_)):
        return b'yes' if value else b'no'
    if isinstance(value, numbers.Integral):
        return b'%d' % int(value)
    if isinstance(value, numbers.Real):
        return repr(float(value)).encode()
    if isinstance(value, str):
        return value.encode()
    if name == 'want' and isinstance(value, Iterable):
        return ','.join(value).encode()
    raise refuse(f'{name} is {given(value)}: a number, a word, True or False is wanted')


@contextlib.contextmanager
def _settings(options: Mapping[str, object]) -> Iterator[_abi.outboard_rqa_options]:
    """Sets the options of the C library; frees them at the end."""
    pointer, preset = _abi.outboard_rqa_options(), options.get('preset')
    call(lib.outboard_rqa_options_new, None if preset is None else _text('preset', preset),
         ctypes.byref(pointer))
    try:
        chosen = {'want': 'vertical', **options}
        # theiler also sets three other options, so it is set before them.
        for name in sorted(chosen, key=lambda n: n != 'theiler'):
            if name != 'preset' and name not in _CALL and chosen[name] is not None:
                call(lib.outboard_rqa_options_set, pointer, name.replace('_', '-').encode(),
                     _text(name, chosen[name]))
        yield pointer
    finally:
        lib.outboard_rqa_options_free(pointer)


# ---- series ----

def _samples(name: str, value: ArrayLike) -> NDArray[np.float64]:
    """A series as float64 of shape (samples, channels)."""
    array = np.asarray(value)
    if array.dtype.kind not in 'fiub' or array.dtype.itemsize > 8 or array.ndim not in (1, 2):
        raise refuse(f'{name} is {given(array)}: real numbers of shape (samples,) or (samples, channels) '
                     'are wanted')
    array = contiguous(array.astype(np.float64, copy=False))
    return cast('NDArray[np.float64]', array.reshape(len(array), -1) if array.size else array.reshape(0, 1))


class SeriesSet(Handle):
    """Series that are kept for many analyses. The library copies the numbers.

    Each series is an array of shape (samples,) or (samples, channels). Real dtypes other than
    float64 are converted to it.
    """

    def __init__(self, series: Sequence[ArrayLike], *, names: Sequence[str] | None = None,
                 context: Context | None = None) -> None:
        if names is not None and len(names) != len(series):
            raise refuse(f'{len(names)} names for {len(series)} series: equal numbers are wanted')
        arrays = [_samples(f'series[{i}]', value) for i, value in enumerate(series)]
        raw = (_abi.outboard_series * max(len(arrays), 1))()
        for i, array in enumerate(arrays):
            raw[i].name = names[i].encode() if names is not None else None
            raw[i].data = ctypes.cast(array.ctypes.data, ctypes.POINTER(ctypes.c_double))
            raw[i].length, raw[i].channels = array.shape
        parent = (context or default_context())._core
        pointer = _abi.outboard_series_set()
        owner = parent.acquire()
        try:
            call(lib.outboard_series_new, owner, raw, len(arrays), ctypes.byref(pointer))
            self._own(Core('set of series', pointer, lib.outboard_series_free, parent))
        finally:
            parent.release()
        self.names = tuple(names) if names is not None else tuple(f'series {i}' for i in range(len(arrays)))

    def __len__(self) -> int:
        return len(self.names)

    def analyse(self, x: int = 0, y: int | None = None, *, m: int = 1, tau: int = 1, eps: float,
                lmin: int = 2, **options: Unpack[Options]) -> Measures:
        """Measures of series x; with y, of the cross or joint recurrence of series x and y."""
        merged: dict[str, object] = {'m': m, 'tau': tau, 'eps': eps, 'lmin': lmin, **options}
        if y is not None:
            merged.setdefault('kind', 'cross')
        values = np.empty(lib.outboard_rqa_measure_count(), np.float64)
        with _settings(merged) as settings:
            run(self._core, lib.outboard_rqa_run, _index('x', x),
                _abi.OUTBOARD_NO_ITEM if y is None else _index('y', y), settings,
                ctypes.cast(values.ctypes.data, ctypes.POINTER(ctypes.c_double)),
                keep=values, options=_call_options(options))
        return Measures(*values.tolist())

    def sweep(self, *, m: Iterable[int] = (1,), tau: Iterable[int] = (1,), eps: Iterable[float],
              lmin: Iterable[int] = (2,), modes: Sequence[Mode] = (), **options: Unpack[Options]) -> Sweep:
        """Measures of every series for every combination of the values."""
        rows = _Rows()
        grid, kept = _grid(m, tau, eps, lmin, modes)
        callback = _abi.FUNCTIONS['outboard_rqa_sweep'][1][3](rows.take)
        with _settings(cast('Mapping[str, object]', options)) as settings:
            try:
                run(self._core, lib.outboard_rqa_sweep, settings, ctypes.byref(grid), callback, None,
                    keep=(grid, kept, callback), options=_call_options(options))
            except CancelledError:
                if rows.error:
                    raise rows.error from None
                raise
        return rows.result(self.names, tuple(mode.name for mode in modes) or ('all',))


def _index(name: str, value: int) -> int:
    if value < 0:
        raise refuse(f'{name} is {value}: the index of a series, from 0, is wanted')
    return value


def _call_options(options: Mapping[str, Any]) -> CallOptions:
    return cast(CallOptions, {name: value for name, value in options.items() if name in _CALL})


def analyse(x: ArrayLike, y: ArrayLike | None = None, *, m: int = 1, tau: int = 1, eps: float, lmin: int = 2,
            context: Context | None = None, **options: Unpack[Options]) -> Measures:
    """Measures of one series; with y, of the cross recurrence of two (kind="joint": joint).

    x, y: arrays of shape (samples,) or (samples, channels).
    m: embedding dimension; tau: delay in samples; eps: threshold (radius), in the units of
    eps_unit; lmin: shortest diagonal line that counts.
    """
    series = [_samples('x', x)] + ([] if y is None else [_samples('y', y)])
    with SeriesSet(series, names=['x', 'y'][:len(series)], context=context) as held:
        return held.analyse(0, None if y is None else 1, m=m, tau=tau, eps=eps, lmin=lmin, **options)


def sweep(series: Sequence[ArrayLike], *, m: Iterable[int] = (1,), tau: Iterable[int] = (1,),
          eps: Iterable[float], lmin: Iterable[int] = (2,), modes: Sequence[Mode] = (),
          names: Sequence[str] | None = None, context: Context | None = None,
          **options: Unpack[Options]) -> Sweep:
    """Measures of every series for every combination of the values of m, tau, eps, lmin and modes."""
    with SeriesSet(series, names=names, context=context) as held:
        return held.sweep(m=m, tau=tau, eps=eps, lmin=lmin, modes=modes, **options)


# ---- sweeps ----


@dataclass(frozen=True)
class Sweep:
    """The rows of a sweep.

    table: a structured array with the fields series, mode, m, tau, lmin, eps, status and one for
    each measure, sorted by the first six; `pandas.DataFrame(sweep.table)` works. status 0 is success;
    the measures of a row with another status are NaN, and `reasons` maps its index to a text.
    series and mode are indices in `names` and `modes`.
    """

    table: NDArray[Any]
    names: tuple[str, ...]
    modes: tuple[str, ...]
    reasons: Mapping[int, str]

    def __len__(self) -> int:
        return len(self.table)


_KEYS = ('series', 'mode', 'm', 'tau', 'lmin', 'eps')


def _table_type() -> np.dtype[Any]:
    return np.dtype([('series', 'u8'), ('mode', 'u4'), ('m', 'u4'), ('tau', 'u4'), ('lmin', 'u4'),
                     ('eps', 'f8'), ('status', 'i4'), *((name, 'f8') for name in measure_names())])


class _Rows:
    """Collects rows. take() is called by the library's threads, one at a time."""

    def __init__(self) -> None:
        self.keys: list[tuple[int, int, int, int, int, float, int]] = []
        self.values: list[bytes] = []
        self.texts: list[str | None] = []
        self.error: Exception | None = None
        self.width = 8 * int(lib.outboard_rqa_measure_count())
        self.undefined = np.full(self.width // 8, np.nan).tobytes()

    def take(self, _: object, rows: Any, count: int) -> int:
        """Copies rows, which are valid only during the call. Returns 1 after an error: cancel."""
        try:
            for i in range(count):
                row = rows[i]
                good = row.status == _abi.OUTBOARD_OK
                self.keys.append((row.series, row.mode, row.m, row.tau, row.lmin, row.eps, row.status))
                self.values.append(ctypes.string_at(row.values, self.width) if good else self.undefined)
                self.texts.append(None if good else (row.reason or b'').decode('utf-8', 'replace'))
            return 0
        except Exception as error:  # an exception cannot pass through C
            self.error = error
            return 1

    def result(self, names: tuple[str, ...], modes: tuple[str, ...]) -> Sweep:
        """The rows, sorted by their keys."""
        order = sorted(range(len(self.keys)), key=self.keys.__getitem__)
        table = np.empty(len(order), _table_type())
        for column, name in enumerate((*_KEYS, 'status')):
            table[name] = [self.keys[i][column] for i in order]
        values = np.frombuffer(b''.join(self.values), np.float64).reshape(len(order), -1)
        for column, name in enumerate(measure_names()):
            table[name] = values[order, column]
        texts = ((place, self.texts[i]) for place, i in enumerate(order))
        return Sweep(table, names, modes, {place: text for place, text in texts if text is not None})


def _list(name: str, values: Iterable[float], dtype: Any, ctype: Any) -> tuple[Any, int]:
    """A list of the grid as a C array, and its length."""
    array = np.asarray(list(values))
    if array.ndim != 1 or not array.size:
        raise refuse(f'{name} is {given(array)}: at least one value is wanted')
    whole = np.issubdtype(dtype, np.integer)
    if array.dtype.kind not in ('iu' if whole else 'iuf') or (whole and (array.min() < 0 or array.max() >= 2 ** 32)):
        raise refuse(f'{name} holds {array.tolist()[:4]} ...: {"whole numbers from 0" if whole else "real numbers"} '
                     'are wanted')
    return (ctype * array.size)(*array.tolist()), array.size


def _grid(m: Iterable[int], tau: Iterable[int], eps: Iterable[float], lmin: Iterable[int],
          modes: Sequence[Mode]) -> tuple[_abi.outboard_rqa_grid, object]:
    """The grid as a C struct, and the objects that it points to."""
    grid, kept = _abi.outboard_rqa_grid(), []
    for name, values in (('m', m), ('tau', tau), ('lmin', lmin), ('eps', eps)):
        real = name == 'eps'
        array, count = _list(name, values, np.float64 if real else np.uint32,
                             ctypes.c_double if real else ctypes.c_uint32)
        kept.append(array)
        setattr(grid, name, array)
        setattr(grid, name + '_count', count)
    if modes:
        raw = (_abi.outboard_rqa_mode * len(modes))()
        for to, mode in zip(raw, modes):
            channels = (ctypes.c_uint32 * max(len(mode.channels), 1))(*mode.channels)
            kept.append(channels)
            to.name, to.norm = mode.name.encode(), mode.norm.encode() if mode.norm else None
            to.channels, to.channel_count = channels, len(mode.channels)
        kept.append(raw)
        grid.modes, grid.mode_count = raw, len(modes)
    return grid, kept
