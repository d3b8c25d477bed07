# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Numba: kernels, shared memory, atomics, reductions, streams, pinned memory: numba_kernels.py STEPS"""
import sys

import numpy as np
if not hasattr(np, 'row_stack'):  # Numba 0.68 looks for it, NumPy 2.5 has it no more
    np.row_stack = np.vstack
from numba import cuda, float32
from steps import timed


@cuda.jit
def add(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


@cuda.jit
def histogram(x, out):
    shared = cuda.shared.array(64, float32)
    shared[cuda.threadIdx.x] = x[cuda.grid(1)]
    cuda.syncthreads()
    cuda.atomic.add(out, cuda.threadIdx.x, shared[cuda.threadIdx.x])


total = cuda.reduce(lambda a, b: a + b)
x = cuda.to_device(np.arange(1024, dtype=np.float32))
out = cuda.device_array_like(x)
histogram[16, 64](x, out)
total(x)
stream = cuda.stream()
with cuda.pinned(np.zeros(16)), stream.auto_synchronize():
    add[8, 128, stream](x, x, out)
print('copied', bool((x.copy_to_host() == np.arange(1024)).all()), out.shape)
start, end = cuda.event(), cuda.event()
start.record()
end.record()
end.synchronize()
print('events', cuda.event_elapsed_time(start, end) >= 0)


def step():
    add[8, 128](x, x, out)


timed(step, cuda.synchronize, int(sys.argv[1]))
