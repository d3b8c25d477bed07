# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Numba-CUDA on the first GPU: kernels, shared memory, atomics, streams, pinned memory."""
import os

import numbers_of

np = numbers_of.module('numpy')
if not hasattr(np, 'row_stack'):  # Numba 0.68 looks for it, NumPy 2.5 has it no more
    np.row_stack = np.vstack
numbers_of.module('numba')
cuda = numbers_of.module('numba.cuda')
if not cuda.is_available():
    numbers_of.skip('numba.cuda.is_available() is false')
if os.environ.get('OUTBOARD_TEST_PTX_ONLY'):  # link by the driver, which accepts PTX: nvJitLink makes machine code
    linker = numbers_of.module('cuda.core._linker')
    linker._driver = numbers_of.module('cuda.bindings.driver')
    linker._use_nvjitlink_backend, linker._decide_nvjitlink_or_driver = False, lambda: True
    for user in ('cudadrv.driver', 'decorators', 'memory_management.nrt'):
        numbers_of.module(f'numba.cuda.{user}')._have_nvjitlink = lambda: False
float32 = numbers_of.module('numba').float32
made = np.random.default_rng(5)
x = made.standard_normal(100000).astype('float32')


@numbers_of.case
def device_name():
    device = cuda.get_current_device()
    print(f'device: {device.name.decode() if isinstance(device.name, bytes) else device.name}, {device.compute_capability}')


@numbers_of.case
def saxpy():
    @cuda.jit
    def kernel(a, v, w):
        i = cuda.grid(1)
        if i < v.size:
            w[i] = a * v[i] + w[i]

    w = cuda.to_device(np.ones_like(x))
    kernel[391, 256](np.float32(3), cuda.to_device(x), w)
    numbers_of.array('saxpy', w.copy_to_host())


@numbers_of.case
def shared_memory():
    @cuda.jit
    def reverse(v, w):
        tile = cuda.shared.array(256, float32)
        i, t = cuda.grid(1), cuda.threadIdx.x
        tile[t] = v[i]
        cuda.syncthreads()
        w[i] = tile[255 - t]

    w = cuda.device_array(25600, np.float32)
    reverse[100, 256](cuda.to_device(x[:25600]), w)
    numbers_of.array('shared', w.copy_to_host())


@numbers_of.case
def atomics():
    @cuda.jit
    def count(v, bins):
        i = cuda.grid(1)
        if i < v.size:
            cuda.atomic.add(bins, int(abs(v[i]) * 10) % 64, 1)

    bins = cuda.to_device(np.zeros(64, np.int32))
    count[391, 256](cuda.to_device(x), bins)
    numbers_of.array('atomics', bins.copy_to_host())


@numbers_of.case
def streams():
    @cuda.jit
    def twice(v):
        i = cuda.grid(1)
        if i < v.size:
            v[i] *= 2

    stream = cuda.stream()
    pinned = cuda.pinned_array(100000, np.float32)
    pinned[:] = x
    d = cuda.to_device(pinned, stream=stream)
    twice[391, 256, stream](d)
    d.copy_to_host(pinned, stream=stream)
    stream.synchronize()
    numbers_of.array('stream', np.asarray(pinned))


numbers_of.finish()
