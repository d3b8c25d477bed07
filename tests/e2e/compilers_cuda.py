# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""NVRTC and nvJitLink of the CUDA toolkit, or of NVIDIA's Python packages, under `outboard run`: what
they hand out as machine code runs on the software device, and is machine code for any other.

    compilers_cuda.py OUTBOARD SERVER       starts this file under `outboard run`
    compilers_cuda.py soft|machine          the program: which of the two it expects

Exit code 77: there is no NVRTC or no nvJitLink."""
import ctypes
import glob
import os
import subprocess
import sys

CALLER = '''extern "C" __device__ int other(int);
extern "C" __global__ void fill(int *out) { out[threadIdx.x] = other(threadIdx.x); }'''
ALONE = 'extern "C" __global__ void fill(int *out) { out[threadIdx.x] = threadIdx.x * 3 + 1; }'
OTHER = 'extern "C" __device__ int other(int x) { return x * 3 + 1; }'
WRONG = '.version 8.0\n.target sm_80\n.address_size 64\n.visible .func other() { ret; }\n'
PTX, LTOIR, LIBRARY = 2, 3, 6


def library(name):
    folders = [''] + [f'{path}/' for path in sorted(glob.glob('/usr/local/cuda*/lib64'), reverse=True)]
    for folder in folders:
        for version in (13, 12):
            try:
                return ctypes.CDLL(f'{folder}{name}.so.{version}', mode=os.RTLD_LOCAL)
            except OSError:
                continue
    print(f'there is no {name}')
    sys.exit(77)


def must(what, status):
    if status:
        raise SystemExit(f'{what}: status {status}')


class Nvrtc:
    def __init__(self):
        self.library = library('libnvrtc')

    def compile(self, text, *options, kinds=('CUBIN',)):
        """Returns the results of these kinds."""
        program = ctypes.c_void_p()
        must('nvrtcCreateProgram', self.library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b'a.cu', 0, None, None))
        words = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        must(f'nvrtcCompileProgram {options}', self.library.nvrtcCompileProgram(program, len(options), words))
        out = []
        for kind in kinds:
            size = ctypes.c_size_t()
            must(f'nvrtcGet{kind}Size', getattr(self.library, f'nvrtcGet{kind}Size')(program, ctypes.byref(size)))
            data = ctypes.create_string_buffer(size.value or 1)
            if size.value:
                must(f'nvrtcGet{kind}', getattr(self.library, f'nvrtcGet{kind}')(program, data))
            out.append(data.raw[:size.value])
        must('nvrtcDestroyProgram', self.library.nvrtcDestroyProgram(ctypes.byref(program)))
        return out


class Linker:
    def __init__(self):
        self.library = library('libnvJitLink')

    def link(self, options, *inputs):
        """Returns (status, linked image or the error log)."""
        f, handle, size = self.library, ctypes.c_void_p(), ctypes.c_size_t()
        words = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        must(f'nvJitLinkCreate {options}', f.nvJitLinkCreate(ctypes.byref(handle), len(options), words))
        for kind, data in inputs:
            if isinstance(data, str):
                must('nvJitLinkAddFile', f.nvJitLinkAddFile(handle, kind, data.encode()))
            else:
                must('nvJitLinkAddData', f.nvJitLinkAddData(handle, kind, data, ctypes.c_size_t(len(data)), b'input'))
        status = f.nvJitLinkComplete(handle)
        name = 'ErrorLog' if status else 'LinkedCubin'
        must(f'nvJitLinkGet{name}Size', getattr(f, f'nvJitLinkGet{name}Size')(handle, ctypes.byref(size)))
        data = ctypes.create_string_buffer(size.value or 1)
        must(f'nvJitLinkGet{name}', getattr(f, f'nvJitLinkGet{name}')(handle, data))
        must('nvJitLinkDestroy', f.nvJitLinkDestroy(ctypes.byref(handle)))
        return status, data.raw[:size.value]


class Device:
    def __init__(self):
        self.cuda, context, self.capability = ctypes.CDLL('libcuda.so.1'), ctypes.c_void_p(), 0
        must('cuInit', self.cuda.cuInit(0))
        must('cuDevicePrimaryCtxRetain', self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
        must('cuCtxSetCurrent', self.cuda.cuCtxSetCurrent(context))
        for attribute in (75, 76):
            value = ctypes.c_int()
            must('cuDeviceGetAttribute', self.cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, 0))
            self.capability = self.capability * 10 + value.value

    def fill(self, image):
        """Runs the kernel of an image. Returns what it wrote."""
        module, kernel, memory = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
        must('cuModuleLoadData', self.cuda.cuModuleLoadData(ctypes.byref(module), image))
        must('cuModuleGetFunction', self.cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b'fill'))
        must('cuMemAlloc', self.cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(128)))
        words = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
        must('cuLaunchKernel', self.cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, words, None))
        out = (ctypes.c_int * 32)()
        must('cuMemcpyDtoH', self.cuda.cuMemcpyDtoH_v2(out, memory, ctypes.c_size_t(128)))
        must('cuModuleUnload', self.cuda.cuModuleUnload(module))
        return list(out)


def device_runtime():
    return next(iter(glob.glob('/usr/local/cuda*/lib64/libcudadevrt.a')), None)


def program(expected):
    nvrtc, linker, device = Nvrtc(), Linker(), Device()
    arch = f'-arch=sm_{device.capability}'
    other = nvrtc.compile(OTHER, arch, '-rdc=true', kinds=('PTX',))[0]
    caller = nvrtc.compile(CALLER, arch, '-rdc=true', kinds=('PTX', 'CUBIN'))
    lto_caller, lto_other = (nvrtc.compile(text, arch, '-dlto', '-rdc=true', kinds=('LTOIR',))[0] for text in (CALLER, OTHER))
    images = {'NVRTC': (0, nvrtc.compile(ALONE, arch)[0]),
              'nvJitLink, PTX': linker.link([arch], (PTX, caller[0]), (PTX, other)),
              'nvJitLink, what NVRTC made': linker.link([arch], (1, caller[1]), (PTX, other)),
              'nvJitLink, LTO': linker.link([arch, '-lto'], (LTOIR, lto_caller), (LTOIR, lto_other)),
              'nvJitLink, LTO and PTX': linker.link([arch, '-lto'], (LTOIR, lto_caller), (PTX, other))}
    # the device's runtime library, as data or as a file, beside LTO-IR
    path = device_runtime()
    inputs = ((LTOIR, lto_caller), (LTOIR, lto_other))
    if path:
        images['nvJitLink, LTO and cudadevrt'] = linker.link([arch, '-lto'], *inputs, (LIBRARY, open(path, 'rb').read()))
        images['nvJitLink, LTO and the file of cudadevrt'] = linker.link([arch, '-lto'], *inputs, (LIBRARY, path))
    for name, (status, image) in images.items():
        must(f'{name}: {image[:300] if status else ""}', status)
        if expected == 'machine':
            print(f'{name}: {"machine code" if image[:4] == bytes([127]) + b"ELF" else image[:40]}')
        else:
            print(f'{name}: {"right" if device.fill(image) == [3 * i + 1 for i in range(32)] else "WRONG"}')
    print('compiled for a capability, no machine code:', len(nvrtc.compile(ALONE, '-arch=compute_80')[0]))
    if expected == 'soft':
        status, log = linker.link([arch], (PTX, caller[0]), (PTX, other), (PTX, WRONG.encode() + b'\0'))
        print('a name twice:', 'refused' if status and b'other' in log else (status, log))
    # with -ptx the program asks for PTX itself
    handle, options = ctypes.c_void_p(), (ctypes.c_char_p * 3)(arch.encode(), b'-lto', b'-ptx')
    must('nvJitLinkCreate -ptx', linker.library.nvJitLinkCreate(ctypes.byref(handle), 3, options))
    must('nvJitLinkAddData', linker.library.nvJitLinkAddData(handle, LTOIR, lto_caller, ctypes.c_size_t(len(lto_caller)), b'a'))
    must('nvJitLinkAddData', linker.library.nvJitLinkAddData(handle, LTOIR, lto_other, ctypes.c_size_t(len(lto_other)), b'b'))
    must('nvJitLinkComplete', linker.library.nvJitLinkComplete(handle))
    size = ctypes.c_size_t()
    must('nvJitLinkGetLinkedPtxSize', linker.library.nvJitLinkGetLinkedPtxSize(handle, ctypes.byref(size)))
    data = ctypes.create_string_buffer(size.value)
    must('nvJitLinkGetLinkedPtx', linker.library.nvJitLinkGetLinkedPtx(handle, data))
    print('-ptx:', 'PTX' if b'.visible .entry fill' in data.raw else data.raw[:40])
    must('nvJitLinkDestroy', linker.library.nvJitLinkDestroy(ctypes.byref(handle)))


def expected_lines(each, twice):
    names = ['NVRTC', 'nvJitLink, PTX', 'nvJitLink, what NVRTC made', 'nvJitLink, LTO', 'nvJitLink, LTO and PTX']
    if device_runtime():
        names += ['nvJitLink, LTO and cudadevrt', 'nvJitLink, LTO and the file of cudadevrt']
    return ''.join(f'{name}: {each}\n' for name in names) + 'compiled for a capability, no machine code: 0\n' + twice + '-ptx: PTX\n'


def main():
    sys.path.append(sys.path[0] + '/../lib')
    import waiting
    from outboard_test import ENV, Server, check, finish, skip
    outboard, server = sys.argv[1:]

    def run(where, expected, **env):
        done = subprocess.run([outboard, 'run', *where, '--', sys.executable, __file__, expected], capture_output=True, text=True, timeout=waiting.LONG, env={**ENV, **env})
        if done.returncode == 77:
            skip(done.stdout.strip())
        each, twice = ('right', 'a name twice: refused\n') if expected == 'soft' else ('machine code', '')
        check(f'{" ".join(where[:3])} {" ".join(env.values())}: {each}', done.stdout == expected_lines(each, twice), done.stdout + done.stderr)

    if not device_runtime():
        print('no libcudadevrt.a: its two cases are left out')
    for capability in '8.0', '9.0', '12.1', '13.0':
        run(['--direct'], 'soft', OUTBOARD_SOFT_CC=capability)
    with Server(server, '--driver', 'soft') as soft, Server(server, '--driver', 'dryrun') as other:
        run(['--server', soft.url], 'soft')
        run(['--server', other.url], 'machine')
    run(['--direct', '--driver', 'dryrun'], 'machine')
    finish()


if len(sys.argv) == 2:
    program(sys.argv[1])
else:
    main()
