# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Uses liboutboard from Python by ctypes: a sweep over three series prints its rows as they arrive.

    python3 sweep.py [liboutboard.so]
"""
import ctypes as c
import math
import sys

ob = c.CDLL(sys.argv[1] if len(sys.argv) > 1 else 'liboutboard.so.0')


class Error(c.Structure):
    _fields_ = [('status', c.c_int32), ('device', c.c_uint32), ('item', c.c_uint64), ('text', c.c_char * 496)]


class Series(c.Structure):
    _fields_ = [('name', c.c_char_p), ('data', c.POINTER(c.c_double)), ('length', c.c_uint64), ('channels', c.c_uint32), ('unused', c.c_uint32),
                ('reserved', c.c_uint64 * 2)]


class Grid(c.Structure):
    _fields_ = [('m', c.POINTER(c.c_uint32)), ('tau', c.POINTER(c.c_uint32)), ('lmin', c.POINTER(c.c_uint32)), ('eps', c.POINTER(c.c_double)),
                ('m_count', c.c_uint32), ('tau_count', c.c_uint32), ('lmin_count', c.c_uint32), ('eps_count', c.c_uint32),
                ('modes', c.c_void_p), ('mode_count', c.c_uint32), ('unused', c.c_uint32), ('reserved', c.c_uint64 * 4)]


class Row(c.Structure):
    _fields_ = [('series', c.c_uint64), ('mode', c.c_uint32), ('m', c.c_uint32), ('tau', c.c_uint32), ('lmin', c.c_uint32), ('eps', c.c_double),
                ('status', c.c_int32), ('unused', c.c_uint32), ('reason', c.c_char_p), ('values', c.POINTER(c.c_double))]


ROWS = c.CFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(Row), c.c_uint32)
error = Error()


def check(status):
    if status:
        raise RuntimeError(error.text.decode())


def main():
    lengths, kept = [200, 150, 3], []
    series = (Series * 3)()
    for s, n in enumerate(lengths):
        kept.append((c.c_double * n)(*(math.sin(0.2 * i * (s + 1)) for i in range(n))))
        series[s].data, series[s].length, series[s].channels = kept[s], n, 1
    handle, options = c.c_void_p(), c.c_void_p()
    check(ob.outboard_series_new(None, series, c.c_uint64(3), c.byref(handle), c.byref(error)))
    check(ob.outboard_rqa_options_new(b'julia', c.byref(options), c.byref(error)))
    m, tau, lmin, eps = (c.c_uint32 * 2)(2, 3), (c.c_uint32 * 1)(4), (c.c_uint32 * 1)(2), (c.c_double * 2)(0.1, 0.2)
    grid = Grid(m=m, tau=tau, lmin=lmin, eps=eps, m_count=2, tau_count=1, lmin_count=1, eps_count=2)
    det = ob.outboard_rqa_measure_find(b'DET')

    def rows(_, row, count):
        for r in row[:count]:
            print(f'series {r.series} m {r.m} eps {r.eps}:', f'DET {r.values[det]:.6f}' if r.status == 0 else r.reason.decode(), flush=True)
        return 0

    callback = ROWS(rows)
    check(ob.outboard_rqa_sweep(handle, options, c.byref(grid), callback, None, None, c.byref(error)))
    ob.outboard_rqa_options_free(options)
    ob.outboard_series_free(handle)


main()
