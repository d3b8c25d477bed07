# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""What the software device says on the program's stderr, in the program's process and through a server:
one line for each cause, with the kernel, the cause and what helps; and the capability and the memory
that it has.

    soft_messages.py OUTBOARD SERVER         starts this file under `outboard run`
    soft_messages.py CASE                    the program
"""
import ctypes
import os
import struct
import subprocess
import sys

HEAD = '.version 8.0\n.target sm_75\n.address_size 64\n'
KERNELS = {'fault': f'{HEAD}.visible .entry k()\n{{\n.reg .b64 %a;\nmov.b64 %a, 64;\nst.global.b64 [%a], %a;\nret;\n}}\n',
           'refused': '.version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{\ntcgen05.fence::before_thread_sync;\nret;\n}\n',
           'broken': f'{HEAD}.visible .entry k()\n{{\nnonsense;\nret;\n}}\n'}


def program(case):
    cuda, context, module, kernel, address, number = ctypes.CDLL('libcuda.so.1'), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_int()
    print('start', cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context))
    if case == 'memory':
        for size in (1 << 41, 1 << 42):
            print('memory', cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)), cuda.cuMemAllocAsync(ctypes.byref(address), ctypes.c_size_t(size), None))
    elif case == 'facts':
        capability = []
        for attribute in (75, 76):
            cuda.cuDeviceGetAttribute(ctypes.byref(number), attribute, 0)
            capability.append(str(number.value))
        cuda.cuDeviceTotalMem_v2(ctypes.byref(address), 0)
        print('.'.join(capability), address.value)
    elif case.startswith('no PTX'):
        for _ in range(3):
            print('load', cuda.cuModuleLoadData(ctypes.byref(module), fatbin(120)))
    else:
        print('load', cuda.cuModuleLoadData(ctypes.byref(module), KERNELS[case].encode()))
        if module.value:
            print('function', cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b'k'))
            for _ in range(2):
                print('launch', cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None), cuda.cuCtxSynchronize())


def fatbin(arch):
    """A fatbin with one entry of machine code."""
    code = b'\x7fELF' + bytes(60)
    entry = struct.pack('<HHIQIIIIIIQQQ', 2, 0x101, 64, len(code), 0, 0, 0, arch, 0, 0, 0x11, 0, 0)
    return struct.pack('<IHHQ', 0xba55ed50, 1, 16, len(entry) + len(code)) + entry + code


def main():
    sys.path.append(sys.path[0] + '/../lib')
    import waiting
    from outboard_test import ENV, Server, check, finish
    outboard, server = sys.argv[1:]
    base = {k: v for k, v in ENV.items() if not k.startswith('OUTBOARD_SOFT_')}

    def run(where, case, **env):
        done = subprocess.run([outboard, 'run', *where, '--', sys.executable, __file__, case], capture_output=True, text=True, timeout=waiting.LONG, env={**base, **env})
        # the server of this test logs at level info, on the program's stderr as well
        return done.stdout.splitlines()[1:], [line for line in done.stderr.splitlines() if not line.startswith('outboard-softdevice: ') or 'error: ' in line]

    def said(where, case, out, *words, **env):
        name = f'{where[0]}, {case}'
        got, lines = run(where, case, **env)
        check(f'{name}: what the calls return', got == out, got)
        check(f'{name}: one line', len(lines) == 1, lines)
        check(f'{name}: it says {words}', all(word in ''.join(lines) for word in words), lines)

    def all_cases(where):
        said(where, 'fault', ['load 0', 'function 0', 'launch 0 700', 'launch 700 700'], 'kernel k', 'write of size 8 bytes at 0x40', 'OUTBOARD_SOFT_MEMCHECK=1')
        said(where, 'refused', ['load 0', 'function 0', 'launch 218 0', 'launch 218 0'], 'kernel k', 'tcgen05', 'OUTBOARD_SOFT_CC=8.0')
        said(where, 'broken', ['load 218'], 'line 6', 'nonsense')
        said(where, 'memory', ['memory 2 2'] * 2, '2.0 TiB', 'OUTBOARD_SOFT_MEMORY=')
        said(where, 'no PTX', ['load 209'] * 3, 'sm_120 (no PTX)', 'Rebuild it with PTX')
        said(where, 'no PTX, older device', ['load 209'] * 3, 'sm_120 (no PTX)', 'Leave OUTBOARD_SOFT_CC unset', OUTBOARD_SOFT_CC='12.1')

    def fact(where, **env):
        lines, errors = run(where, 'facts', **env)
        return (*lines[0].split(), len(errors))

    all_cases(['--direct'])
    capability, size, lines = fact(['--direct'])
    half = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') // 2
    check('the usual capability', capability == '13.0' and lines == 0, capability)
    check('the usual memory: whole GiB, at most half of the machine, 1 to 64', int(size) % (1 << 30) == 0 and 1 << 30 <= int(size) <= max(1 << 30, min(64 << 30, half)), size)
    check('set', fact(['--direct'], OUTBOARD_SOFT_CC='8.6', OUTBOARD_SOFT_MEMORY='512M') == ('8.6', str(512 << 20), 0))
    with Server(server, '--driver', 'soft', env={'OUTBOARD_SOFT_CC': '12.1', 'OUTBOARD_SOFT_MEMORY': '1G'}) as there:
        where = ['--server', there.url]
        check('as the server says', fact(where) == ('12.1', str(1 << 30), 0), fact(where))
        check('a lower capability for one program', fact(where, OUTBOARD_SOFT_CC='9.0')[::2] == ('9.0', 0), fact(where, OUTBOARD_SOFT_CC='9.0'))
        check('a higher one is refused with a line', fact(where, OUTBOARD_SOFT_CC='13.0')[::2] == ('12.1', 1), fact(where, OUTBOARD_SOFT_CC='13.0'))
        check('what is none is refused with a line', fact(where, OUTBOARD_SOFT_CC='9')[::2] == ('12.1', 1), fact(where, OUTBOARD_SOFT_CC='9'))
    with Server(server, '--driver', 'soft') as there:
        all_cases(['--server', there.url])
    with Server(server, '--driver', 'dryrun') as there:
        check('a dry run keeps its own', fact(['--server', there.url], OUTBOARD_SOFT_CC='8.0')[0] == '9.0', fact(['--server', there.url], OUTBOARD_SOFT_CC='8.0'))
    finish()


if len(sys.argv) == 2:
    program(sys.argv[1])
else:
    main()
