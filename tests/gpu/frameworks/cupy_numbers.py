# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""CuPy on the first GPU: elementwise kernels, raw kernels, products, transforms, sorting, streams."""
import numbers_of

np = numbers_of.module('numpy')
cp = numbers_of.module('cupy')
try:
    if cp.cuda.runtime.getDeviceCount() < 1:
        numbers_of.skip('CuPy sees no device')
except cp.cuda.runtime.CUDARuntimeError as problem:
    numbers_of.skip(f'CuPy sees no device: {problem}')
made = np.random.default_rng(5)


def array(*shape, dtype='float32'):
    return cp.asarray(made.standard_normal(shape).astype(dtype))


def show(name, a):
    numbers_of.array(name, cp.asnumpy(a))


@numbers_of.case
def device_name():
    p = cp.cuda.runtime.getDeviceProperties(0)
    print(f'device: {p["name"].decode()}, {p["major"]}.{p["minor"]}, {p["totalGlobalMem"]} bytes')


@numbers_of.case
def elementwise():
    x = array(1 << 20)
    show('sin', cp.sin(x) * 2 + x)
    show('sum', x.sum())
    show('where', cp.where(x > 0, x, -x))


@numbers_of.case
def raw_kernel():
    kernel = cp.RawKernel(r'extern "C" __global__ void twice(const float *x, float *y, int n) {'
                          r' int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 2 * x[i]; }', 'twice')
    x = array(100000)
    y = cp.zeros_like(x)
    kernel((391,), (256,), (x, y, 100000))
    show('raw kernel', y)


@numbers_of.case
def products():
    show('float32', array(256, 192) @ array(192, 128))
    show('float64', array(256, 192, dtype='float64') @ array(192, 128, dtype='float64'))


@numbers_of.case
def transforms():
    show('fft', cp.fft.fft(array(64, 1000)).view('float32'))


@numbers_of.case
def sorting():
    show('sort', cp.sort(array(1 << 18)))
    show('unique', cp.unique((array(1 << 16) * 10).astype('int32')))
    show('cumsum', cp.cumsum((array(1 << 18) * 100).astype('int32')))  # for floats the result differs from run to run


@numbers_of.case
def random_numbers():
    cp.random.seed(9)
    show('random', cp.random.random(10000))


@numbers_of.case
def streams():
    with cp.cuda.Stream(non_blocking=True) as stream:
        x = array(1 << 18)
        y = cp.exp(x)
        stream.synchronize()
    show('stream', y)


numbers_of.finish()
