#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Makes, uses and destroys a handle of one of NVIDIA's libraries, without a framework.

    library_calls.py LIBRARY FOLDER [DEVICES]

FOLDER holds the libraries, at any depth: the lib64 of a toolkit or a folder of Python packages
(pip install --target). Each call is one line with its status; what a kernel computed is not looked
at, so that the program is of use in a dry run. Exit code 1: a call failed; 77: the library is not
in the folder."""
import ctypes
import os
import pathlib
import re
import sys

SKIPPED = 77
N = 64
# What a library needs beside itself, in the order of loading.
NEEDS = {
    'cudart': ['libcudart'],
    'cublas': ['libcublasLt', 'libcublas'],
    'cudnn': ['libcudart', 'libnvrtc', 'libcublasLt', 'libcublas', 'libcudnn_graph', 'libcudnn_ops', 'libcudnn_ops_infer', 'libcudnn_cnn_infer', 'libcudnn'],
    'cufft': ['libcudart', 'libcufft'],
    'curand': ['libcudart', 'libcurand'],
    'cusparse': ['libnvJitLink', 'libcusparse'],
    'cusolver': ['libcublasLt', 'libcublas', 'libnvJitLink', 'libcusparse', 'libcusolver'],
    'npp': ['libnppc', 'libnpps'],
    'nvjpeg': ['libnvjpeg'],
    'nccl': ['libnccl'],
}
wrong = 0


def told(name, status):
    """Prints the status of a call."""
    global wrong
    wrong += status != 0
    print(f'{name} {status}', flush=True)
    return status == 0


def load(library, folder):
    """Loads a library after those that it needs. Each must come from the folder."""
    found = {}
    for path in sorted(pathlib.Path(folder).rglob('lib*.so*')):
        if m := re.fullmatch(r'(lib\w+?)(?:\.alt)?\.so\.[\d.]+', path.name):
            found.setdefault(m[1], path)
    if NEEDS[library][-1] not in found:
        print(f'there is no {NEEDS[library][-1]} in {folder}')
        sys.exit(SKIPPED)
    for name in NEEDS[library]:
        if name in found:
            last = ctypes.CDLL(str(found[name]), mode=ctypes.RTLD_GLOBAL)
    return last


class Device:
    """Memory of the first device, by driver calls."""

    def __init__(self):
        self.cuda = ctypes.CDLL('libcuda.so.1')
        context = ctypes.c_void_p()
        self.must('cuInit', self.cuda.cuInit(0))
        self.must('cuDevicePrimaryCtxRetain', self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
        self.must('cuCtxSetCurrent', self.cuda.cuCtxSetCurrent(context))

    @staticmethod
    def must(name, status):
        if status:
            told(name, status)
            sys.exit(1)

    def memory(self, size):
        """Returns the address of zeroed memory."""
        address = ctypes.c_uint64()
        self.must('cuMemAlloc', self.cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)))
        self.must('cuMemsetD8', self.cuda.cuMemsetD8_v2(address, 0, ctypes.c_size_t(size)))
        return ctypes.c_void_p(address.value)

    def stream(self):
        stream = ctypes.c_void_p()
        self.must('cuStreamCreate', self.cuda.cuStreamCreate(ctypes.byref(stream), 0))
        return stream

    def wait(self):
        told('cuCtxSynchronize', self.cuda.cuCtxSynchronize())


def call(library, name, *args):
    return told(name, getattr(library, name)(*args))


def made(library, name, *args):
    """Calls a function whose first output is a handle. Returns the handle."""
    handle = ctypes.c_void_p()
    if not call(library, name, ctypes.byref(handle), *args):
        sys.exit(1)
    return handle


def cudart(lib, device):
    version, stream, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    call(lib, 'cudaRuntimeGetVersion', ctypes.byref(version))
    call(lib, 'cudaStreamCreate', ctypes.byref(stream))
    call(lib, 'cudaMalloc', ctypes.byref(memory), ctypes.c_size_t(1 << 20))
    data, back = bytes(range(256)) * 4096, ctypes.create_string_buffer(1 << 20)
    call(lib, 'cudaMemcpyAsync', memory, data, ctypes.c_size_t(1 << 20), 1, stream)
    call(lib, 'cudaMemcpyAsync', back, memory, ctypes.c_size_t(1 << 20), 2, stream)
    call(lib, 'cudaStreamSynchronize', stream)
    print('copied', back.raw == data)
    call(lib, 'cudaFree', memory)
    call(lib, 'cudaStreamDestroy', stream)
    told('a wrong address', lib.cudaFree(ctypes.c_void_p(4096)) - 1)  # cudaErrorInvalidValue
    call(lib, 'cudaDeviceSynchronize')


def cublas(lib, device):
    a, one = [device.memory(N * N * 8) for _ in range(3)], ctypes.c_float(1)
    handle, alpha = made(lib, 'cublasCreate_v2'), ctypes.byref(one)
    call(lib, 'cublasSaxpy_v2', handle, N, alpha, a[0], 1, a[1], 1)
    call(lib, 'cublasSgemm_v2', handle, 0, 0, N, N, N, alpha, a[0], N, a[1], N, alpha, a[2], N)
    half, single = 2, 0  # cudaDataType; computing in CUBLAS_COMPUTE_32F
    call(lib, 'cublasGemmEx', handle, 0, 0, N, N, N, alpha, a[0], half, N, a[1], half, N, alpha, a[2], half, N, 68, -1)
    call(lib, 'cublasGemmEx', handle, 1, 0, N, N, N, alpha, a[0], single, N, a[1], single, N, alpha, a[2], single, N, 77, -1)
    device.wait()
    call(lib, 'cublasDestroy_v2', handle)


def cudnn(lib, device):
    handle, tensor, what, filters, convolution = made(lib, 'cudnnCreate'), *(ctypes.c_void_p() for _ in range(4))
    x, y, one, zero = device.memory(1 << 20), device.memory(1 << 20), ctypes.c_float(1), ctypes.c_float(0)
    call(lib, 'cudnnCreateTensorDescriptor', ctypes.byref(tensor))
    call(lib, 'cudnnSetTensor4dDescriptor', tensor, 0, 0, 1, 8, 16, 16)
    call(lib, 'cudnnCreateActivationDescriptor', ctypes.byref(what))
    call(lib, 'cudnnSetActivationDescriptor', what, 1, 0, ctypes.c_double(0))
    call(lib, 'cudnnActivationForward', handle, what, ctypes.byref(one), tensor, x, ctypes.byref(zero), tensor, y)
    call(lib, 'cudnnCreateFilterDescriptor', ctypes.byref(filters))
    call(lib, 'cudnnSetFilter4dDescriptor', filters, 0, 0, 8, 8, 3, 3)
    call(lib, 'cudnnCreateConvolutionDescriptor', ctypes.byref(convolution))
    call(lib, 'cudnnSetConvolution2dDescriptor', convolution, 1, 1, 1, 1, 1, 1, 1, 0)
    size = ctypes.c_size_t()
    call(lib, 'cudnnGetConvolutionForwardWorkspaceSize', handle, tensor, filters, convolution, tensor, 1, ctypes.byref(size))
    call(lib, 'cudnnConvolutionForward', handle, ctypes.byref(one), tensor, x, filters, y, convolution, 1, device.memory(size.value + 256), size,
         ctypes.byref(zero), tensor, device.memory(1 << 20))
    device.wait()
    call(lib, 'cudnnDestroy', handle)


def cufft(lib, device):
    plan, data = ctypes.c_int(), device.memory(1 << 20)
    call(lib, 'cufftPlan1d', ctypes.byref(plan), 1024, 0x29, 4)
    call(lib, 'cufftExecC2C', plan, data, data, -1)
    device.wait()
    call(lib, 'cufftDestroy', plan)


def curand(lib, device):
    for kind in 100, 121, 141, 142, 161:  # XORWOW, MRG32K3A, MTGP32, MT19937, PHILOX
        generator = ctypes.c_void_p()
        if call(lib, 'curandCreateGenerator', ctypes.byref(generator), kind):
            call(lib, 'curandSetPseudoRandomGeneratorSeed', generator, ctypes.c_ulonglong(1))
            call(lib, 'curandGenerateUniform', generator, device.memory(1 << 20), ctypes.c_size_t(1 << 16))
            device.wait()
            call(lib, 'curandDestroyGenerator', generator)


def cusparse(lib, device):
    handle, matrix, x, y, one = made(lib, 'cusparseCreate'), *(ctypes.c_void_p() for _ in range(3)), ctypes.c_float(1)
    size, rows = ctypes.c_size_t(), ctypes.c_int64(N)
    call(lib, 'cusparseCreateCsr', ctypes.byref(matrix), rows, rows, rows, *(device.memory(4 * N + 4) for _ in range(3)), 2, 2, 0, 0)
    call(lib, 'cusparseCreateDnVec', ctypes.byref(x), rows, device.memory(4 * N), 0)
    call(lib, 'cusparseCreateDnVec', ctypes.byref(y), rows, device.memory(4 * N), 0)
    call(lib, 'cusparseSpMV_bufferSize', handle, 0, ctypes.byref(one), matrix, x, ctypes.byref(one), y, 0, 0, ctypes.byref(size))
    call(lib, 'cusparseSpMV', handle, 0, ctypes.byref(one), matrix, x, ctypes.byref(one), y, 0, 0, device.memory(size.value + 256))
    device.wait()
    call(lib, 'cusparseDestroy', handle)


def cusolver(lib, device):
    handle, a, b, size = made(lib, 'cusolverDnCreate'), device.memory(4 * N * N), device.memory(8 * N * N), ctypes.c_int()
    call(lib, 'cusolverDnSetStream', handle, device.stream())
    call(lib, 'cusolverDnSgetrf_bufferSize', handle, N, N, a, N, ctypes.byref(size))
    call(lib, 'cusolverDnSgetrf', handle, N, N, a, N, device.memory(4 * size.value + 256), device.memory(4 * N), device.memory(4))
    call(lib, 'cusolverDnDgetrf_bufferSize', handle, N // 2, N // 2, b, N, ctypes.byref(size))
    call(lib, 'cusolverDnDgetrf', handle, N // 2, N // 2, b, N, device.memory(8 * size.value + 256), device.memory(4 * N), device.memory(4))
    call(lib, 'cusolverDnSpotrf_bufferSize', handle, 0, N, a, N, ctypes.byref(size))
    call(lib, 'cusolverDnSpotrf', handle, 0, N, a, N, device.memory(4 * size.value + 256), size, device.memory(4))
    device.wait()
    call(lib, 'cusolverDnDestroy', handle)


class NppStream(ctypes.Structure):
    _fields_ = [('stream', ctypes.c_void_p), ('device', ctypes.c_int), ('units', ctypes.c_int), ('threads_per_unit', ctypes.c_int),
                ('threads_per_block', ctypes.c_int), ('shared', ctypes.c_size_t), ('major', ctypes.c_int), ('minor', ctypes.c_int),
                ('flags', ctypes.c_uint), ('reserved', ctypes.c_int)]


def npp(lib, device):
    attribute = {}
    for name, number in ('units', 16), ('threads', 39), ('block', 1), ('shared', 8), ('major', 75), ('minor', 76):
        value = ctypes.c_int()
        device.must('cuDeviceGetAttribute', device.cuda.cuDeviceGetAttribute(ctypes.byref(value), number, 0))
        attribute[name] = value.value
    stream = NppStream(None, 0, attribute['units'], attribute['threads'], attribute['block'], attribute['shared'], attribute['major'], attribute['minor'], 0, 0)
    memory = device.memory(4096)
    lib.nppsSet_32f_Ctx.argtypes = [ctypes.c_float, ctypes.c_void_p, ctypes.c_size_t, NppStream]
    call(lib, 'nppsSet_32f_Ctx', 1.0, memory, 1024, stream)
    lib.nppsAddC_32f_I_Ctx.argtypes = [ctypes.c_float, ctypes.c_void_p, ctypes.c_size_t, NppStream]
    call(lib, 'nppsAddC_32f_I_Ctx', 1.0, memory, 1024, stream)
    device.wait()


class JpegImage(ctypes.Structure):
    _fields_ = [('channel', ctypes.c_void_p * 4), ('pitch', ctypes.c_size_t * 4)]


def tiny_jpeg():
    """8 x 8 grey points: all factors 1, one code (no difference, end of block) in each Huffman table."""
    def segment(marker, data):
        return bytes([0xff, marker]) + (len(data) + 2).to_bytes(2, 'big') + data
    one_code = bytes([1]) + bytes(15) + bytes([0])
    return (b'\xff\xd8' + segment(0xdb, bytes([0]) + bytes([1] * 64)) + segment(0xc0, bytes([8, 0, 8, 0, 8, 1, 1, 0x11, 0]))
            + segment(0xc4, b'\x00' + one_code) + segment(0xc4, b'\x10' + one_code) + segment(0xda, bytes([1, 1, 0, 0, 63, 0])) + b'\x3f\xff\xd9')


def nvjpeg(lib, device):
    """Decodes. Encoding reads sizes back that a kernel has computed, which a dry run does not have."""
    handle, state, data, image = made(lib, 'nvjpegCreateSimple'), ctypes.c_void_p(), tiny_jpeg(), JpegImage()
    call(lib, 'nvjpegJpegStateCreate', handle, ctypes.byref(state))
    channels, sampling, widths, heights = ctypes.c_int(), ctypes.c_int(), (ctypes.c_int * 4)(), (ctypes.c_int * 4)()
    call(lib, 'nvjpegGetImageInfo', handle, data, ctypes.c_size_t(len(data)), ctypes.byref(channels), ctypes.byref(sampling), widths, heights)
    print('image', channels.value, widths[0], heights[0])
    image.channel[0], image.pitch[0] = device.memory(4096).value, 64
    call(lib, 'nvjpegDecode', handle, state, data, ctypes.c_size_t(len(data)), 2, ctypes.byref(image), None)  # 2: one channel, grey
    device.wait()
    call(lib, 'nvjpegJpegStateDestroy', state)
    call(lib, 'nvjpegDestroy', handle)


def nccl(lib, device):
    """All devices that are asked for, in one process."""
    n = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    ranks, data = (ctypes.c_void_p * n)(), []
    if not call(lib, 'ncclCommInitAll', ranks, n, None):
        lib.ncclGetLastError.restype = ctypes.c_char_p
        print(lib.ncclGetLastError(None).decode())
        return
    contexts = [ctypes.c_void_p() for _ in range(n)]
    for i, context in enumerate(contexts):
        device.must('cuDevicePrimaryCtxRetain', device.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), i))
        device.must('cuCtxSetCurrent', device.cuda.cuCtxSetCurrent(context))
        data.append(device.memory(4096))
    call(lib, 'ncclGroupStart')
    for i, context in enumerate(contexts):
        device.must('cuCtxSetCurrent', device.cuda.cuCtxSetCurrent(context))
        call(lib, 'ncclAllReduce', data[i], data[i], ctypes.c_size_t(1024), 7, 0, ctypes.c_void_p(ranks[i]), None)
    call(lib, 'ncclGroupEnd')
    for context in contexts:
        device.must('cuCtxSetCurrent', device.cuda.cuCtxSetCurrent(context))
        device.wait()
    for rank in ranks:
        call(lib, 'ncclCommDestroy', ctypes.c_void_p(rank))


def main():
    library, folder = sys.argv[1:3]
    if library == 'nccl-vmm':  # memory that NCCL makes so that other processes could map it
        library = 'nccl'
    elif library == 'nccl':
        os.environ['NCCL_CUMEM_ENABLE'] = '0'
    lib = load(library, folder)
    globals()[library](lib, None if library == 'cudart' else Device())
    sys.exit(wrong > 0)


main()
