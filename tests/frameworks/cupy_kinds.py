# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""CuPy: element-wise, raw and reduction kernels, products, FFT, sorting, linear algebra, sparse
matrices, random numbers, streams, a pool: cupy_kinds.py STEPS"""
import sys

import cupy as cp
import cupyx.scipy.sparse as sparse
from steps import timed

x = cp.ones((256, 256), dtype=cp.float32)
print('elementwise', (cp.sin(x) * 2 + x).shape, 'sum', cp.sum(x).shape, 'product', (x @ x).shape)
raw = cp.RawKernel('extern "C" __global__ void twice(float *x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }', 'twice')
raw((256,), (256,), (x, x.size))
print('fft', cp.fft.fft2(x).shape, 'sort', cp.sort(x.ravel()).shape, 'scan', cp.cumsum(x).shape)
print('sparse', (sparse.csr_matrix(cp.eye(64, dtype=cp.float32)) @ cp.ones(64, dtype=cp.float32)).shape, 'random', cp.random.rand(10).shape)
with cp.cuda.Stream(non_blocking=True) as stream:
    y = x + x
    stream.synchronize()
print('copied', bool((cp.asnumpy(cp.asarray(range(1000))) == range(1000)).all()), 'pool', cp.get_default_memory_pool().total_bytes() > 0)


def step():
    global y
    y = cp.tanh(x @ x) + 1


timed(step, lambda: float(y[0, 0]), int(sys.argv[1]))
print('linalg', cp.linalg.inv(cp.eye(32)).shape, cp.linalg.svd(cp.eye(32))[1].shape, cp.linalg.cholesky(cp.eye(32)).shape)
