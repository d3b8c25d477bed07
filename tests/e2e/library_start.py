# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Starts a library of the CUDA toolkit, or loads PTX text: what library_trips.py counts.

    library_start.py text|cublas|cufft|cusparse|cudnn N

N: handles or plans, each of them destroyed, or loads of the text. Exit code 77 without the
library. Prints its version.
"""
import ctypes
import glob
import sys

SKIPPED = 77
WHAT, N = sys.argv[1], int(sys.argv[2])
# One line does not count as plain (image/ptx_plain.h), so that the function is asked for too.
TEXT = b""".version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 p)
{
	.reg .b16 %h<3>;
	mov.b16 %h1, 0;
	add.f16 %h2, %h1, %h1;
	ret;
}
"""


def must(what, result):
    if result:
        print(f'{what}: status {result}')
        sys.exit(1)


def load(*names):
    """Loads the libraries in this order, all from one folder: the loader's, or a toolkit's."""
    for folder in ['', *(f'{path}/' for path in sorted(glob.glob('/usr/local/cuda*/lib64'), reverse=True))]:
        try:
            return [ctypes.CDLL(folder + name, mode=ctypes.RTLD_GLOBAL) for name in names][-1]
        except OSError:
            pass
    print(f'there is no {names[-1]}: install the CUDA toolkit')
    sys.exit(SKIPPED)


def load_text():
    cuda = ctypes.CDLL('libcuda.so.1')
    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    attributes = set()
    must('cuInit', cuda.cuInit(0))
    must('retain', cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    must('current', cuda.cuCtxSetCurrent(context))
    for _ in range(N):
        must('load', cuda.cuModuleLoadData(ctypes.byref(module), TEXT))
        must('function', cuda.cuModuleGetFunction(ctypes.byref(function), module, b'k'))
        # 0: threads of a block, 1: shared memory, 4: registers, 8: dynamic shared memory, which is also set
        values = [ctypes.c_int() for _ in range(4)]
        for value, attribute in zip(values, (0, 1, 4, 8)):
            must('attribute', cuda.cuFuncGetAttribute(ctypes.byref(value), attribute, function))
        attributes.add(tuple(value.value for value in values))
        must('set', cuda.cuFuncSetAttribute(function, 8, 1024))
        address = ctypes.c_uint64()
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(address))
        must('launch', cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, parameters, None))
    must('different attributes of one kernel', len(attributes) != 1)
    print('version 1')


def handles(create, destroy, handle, *arguments):
    for _ in range(N):
        must('create', create(ctypes.byref(handle), *arguments))
        must('destroy', destroy(handle))


def cublas():
    library = load('libcublasLt.so.13', 'libcublas.so.13')
    handles(library.cublasCreate_v2, library.cublasDestroy_v2, ctypes.c_void_p())
    number = ctypes.c_int()
    must('version', library.cublasGetProperty(0, ctypes.byref(number)))
    print('version', number.value)


def cufft():
    library = load('libcufft.so.12')
    handles(library.cufftPlan1d, library.cufftDestroy, ctypes.c_int(), 1024, 0x29, 1)  # CUFFT_C2C
    number = ctypes.c_int()
    must('version', library.cufftGetProperty(0, ctypes.byref(number)))
    print('version', number.value)


def cusparse():
    library = load('libcusparse.so.12')
    handles(library.cusparseCreate, library.cusparseDestroy, ctypes.c_void_p())
    print('version 12')


def cudnn():
    library = load('libcudnn.so.9')
    handles(library.cudnnCreate, library.cudnnDestroy, ctypes.c_void_p())
    print('version 9')


{'text': load_text, 'cublas': cublas, 'cufft': cufft, 'cusparse': cusparse, 'cudnn': cudnn}[WHAT]()
