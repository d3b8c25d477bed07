#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Tests cuBLAS without a framework: operations on vectors and matrices of whole numbers, whose
results are exact. Each result is checked and printed with a checksum.

    cublas_numbers.py [N]      N: rows of the matrices of the large product, 2000 by default

The library is that in the folder OUTBOARD_TEST_CUBLAS if set, else the one that the loader finds,
that of the CUDA toolkit, or that of NVIDIA's Python packages. Without one the exit code is 77.
cuBLAS chooses other kernels for large products than for small ones, and loads them differently."""
import array
import ctypes
import glob
import operator
import os
import random
import sys
import zlib

SKIPPED = 77


def cublas():
    """Loads libcublasLt and then libcublas, which needs it, from the same folder. Returns the
    latter."""
    folders = [''] + [f'{path}/' for path in sorted(glob.glob('/usr/local/cuda*/lib64'), reverse=True)]
    folders += [f'{path}/' for base in sys.path for path in sorted(glob.glob(f'{base}/nvidia/*/lib'), reverse=True) if 'cu' in path]
    if os.environ.get('OUTBOARD_TEST_CUBLAS'):
        folders = [os.environ['OUTBOARD_TEST_CUBLAS'] + '/']
    for folder in folders:
        for version in (13, 12, 11):
            try:
                ctypes.CDLL(f'{folder}libcublasLt.so.{version}', mode=ctypes.RTLD_GLOBAL)
                return ctypes.CDLL(f'{folder}libcublas.so.{version}')
            except OSError:
                continue
    print('there is no cuBLAS: install the CUDA toolkit or the Python package nvidia-cublas')
    sys.exit(SKIPPED)


def must(what, result):
    if result:
        print(f'{what}: status {result}')
        sys.exit(1)


class Memory:
    """Device memory, managed by driver calls."""

    def __init__(self):
        self.cuda = ctypes.CDLL('libcuda.so.1')
        context = ctypes.c_void_p()
        must('cuInit', self.cuda.cuInit(0))
        must('cuDevicePrimaryCtxRetain', self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
        must('cuCtxSetCurrent', self.cuda.cuCtxSetCurrent(context))

    def put(self, values):
        """Copies an array of numbers to the device. Returns the address."""
        address = ctypes.c_uint64()
        size = len(values) * values.itemsize
        must('cuMemAlloc', self.cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)))
        must('cuMemcpyHtoD', self.cuda.cuMemcpyHtoD_v2(address, ctypes.c_void_p(values.buffer_info()[0]), ctypes.c_size_t(size)))
        return address

    def get(self, address, kind, n):
        values = array.array(kind, bytes(n * array.array(kind).itemsize))
        must('cuMemcpyDtoH', self.cuda.cuMemcpyDtoH_v2(ctypes.c_void_p(values.buffer_info()[0]), address, ctypes.c_size_t(n * values.itemsize)))
        return values

    def free(self, *addresses):
        for address in addresses:
            must('cuMemFree', self.cuda.cuMemFree_v2(address))


def matrix(kind, n, step):
    """Returns an n x n matrix of small whole numbers in column-major order. Every number type
    represents them exactly."""
    return array.array(kind, ((i * step + i // n) % 7 - 3 for i in range(n * n)))


def times(m, n, vector):
    """Returns the product of a column-major n x n matrix and a vector, both of whole numbers."""
    out = [0] * n
    for j, factor in enumerate(vector):
        out = list(map(operator.add, out, (int(x) * factor for x in m[j * n:(j + 1) * n])))
    return out


def told(name, right, values):
    print(f'{name}: {"right" if right else "WRONG"} {zlib.crc32(values.tobytes()):08x}', flush=True)
    return right


def product(library, memory, handle, kind, n):
    """Computes C = A B, and checks it with a random vector x: C x = A (B x)."""
    name, number = ('cublasSgemm_v2', ctypes.c_float) if kind == 'f' else ('cublasDgemm_v2', ctypes.c_double)
    a, b = matrix(kind, n, 3), matrix(kind, n, 5)
    on_device = [memory.put(values) for values in (a, b, array.array(kind, bytes(len(a) * a.itemsize)))]
    one, zero = number(1), number(0)
    must(f'{name} {n}', getattr(library, name)(handle, 0, 0, n, n, n, ctypes.byref(one), on_device[0], n, on_device[1], n, ctypes.byref(zero), on_device[2], n))
    c = memory.get(on_device[2], kind, n * n)
    memory.free(*on_device)
    chance = random.Random(n)
    x = [chance.randrange(1, 1 << 20) for _ in range(n)]
    return told(f'{name} {n}', times(c, n, x) == times(a, n, times(b, n, x)), c)


def vectors(library, memory, handle, n):
    """Tests operations on vectors, and on a matrix and a vector."""
    a, x, y = matrix('f', n, 3), array.array('f', (i % 5 - 2 for i in range(n))), array.array('f', (i % 11 - 5 for i in range(n)))
    on_device = da, dx, dy = [memory.put(values) for values in (a, x, y)]
    one, zero, dot = ctypes.c_float(1), ctypes.c_float(0), ctypes.c_float()
    must('cublasSaxpy_v2', library.cublasSaxpy_v2(handle, n, ctypes.byref(one), dx, 1, dy, 1))
    got = memory.get(dy, 'f', n)
    right = told('cublasSaxpy_v2', list(got) == list(map(operator.add, x, y)), got)
    must('cublasSdot_v2', library.cublasSdot_v2(handle, n, dx, 1, dx, 1, ctypes.byref(dot)))
    right &= told('cublasSdot_v2', dot.value == sum(map(operator.mul, x, x)), array.array('f', [dot.value]))
    must('cublasSgemv_v2', library.cublasSgemv_v2(handle, 0, n, n, ctypes.byref(one), da, n, dx, 1, ctypes.byref(zero), dy, 1))
    got = memory.get(dy, 'f', n)
    right &= told('cublasSgemv_v2', list(map(int, got)) == times(a, n, list(map(int, x))), got)
    memory.free(*on_device)
    return right


def main():
    large = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    library, memory, handle = cublas(), Memory(), ctypes.c_void_p()
    must('cublasCreate_v2', library.cublasCreate_v2(ctypes.byref(handle)))
    right = vectors(library, memory, handle, 500)
    for kind, n in (('f', 64), ('d', 64), ('f', 500), ('f', large)):
        right &= product(library, memory, handle, kind, n)
    must('cublasDestroy_v2', library.cublasDestroy_v2(handle))
    sys.exit(0 if right else 1)


main()
