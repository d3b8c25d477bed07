# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The compute capability that Triton and PyTorch see on the software device: not one that Triton
cannot compile for. All others see the device's.

    capability.py OUTBOARD SERVER FAKE_TRITON FAKE_CUDA_UTILS FAKE_CUDART FAKE_UNLINKED
"""
import ctypes
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')

if sys.argv[1] == 'ask':
    # ask NAME...: opens files, and asks in the last one in all ways. "?" before a name: asks in this one,
    # too, before the next are opened.
    for name in sys.argv[2:]:
        last = ctypes.CDLL(name.lstrip('?'), ctypes.RTLD_GLOBAL if 'cudart' in name else ctypes.RTLD_LOCAL)
        if name[0] == '?':
            last.asks_runtime()
    print(last.asks_driver(), last.asks_runtime(), last.asks_runtime_12())
    sys.exit()

import waiting  # noqa: E402
from outboard_test import ENV, Server, check, finish  # noqa: E402

OUTBOARD, SERVER, TRITON, CUDA_UTILS, CUDART, UNLINKED = sys.argv[1:]


def asked(where, *files, **env):
    """What the last of the files sees: from the driver, from the runtime library, from that of CUDA 12."""
    env = {**ENV, 'LD_LIBRARY_PATH': os.path.dirname(CUDART), **env}
    done = subprocess.run([OUTBOARD, 'run', *where, '--', sys.executable, __file__, 'ask', *map(str, files)], capture_output=True, text=True, timeout=waiting.LONG, env=env)
    return done.stdout.strip() or done.stderr


def same(what, got, wanted):
    check(what, got == wanted, f'{got} instead of {wanted}')


with tempfile.TemporaryDirectory() as folder, Server(SERVER, '--driver', 'soft', '--warm', '0') as soft:
    names = 'site/triton/_C/libtriton.so', 'site/torch/lib/libc10_cuda.so', 'cache/cuda_utils.so', 'site/other/libuser.so', 'old/torch/lib/libtorch_cuda.so'
    compiler, torch, utils, other, alone = (pathlib.Path(folder, name) for name in names)
    for file in compiler, torch, utils, other, alone:
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CUDA_UTILS if file == utils else TRITON, file)
    for where in ['--direct'], ['--server', soft.url]:
        same(f'{where[0]}: all others', asked(where, compiler, other), '130 130 130')
        same(f'{where[0]}: Triton: what its compiler knows', asked(where, compiler, utils), '120 130 130')
        same(f'{where[0]}: PyTorch, before Triton is loaded', asked(where, torch), '130 120 120')
        same(f'{where[0]}: PyTorch, with Triton', asked(where, compiler, torch), '130 120 120')
        same(f'{where[0]}: no compiler', asked(where, utils), '121 130 130')
        same(f'{where[0]}: PyTorch without Triton', asked(where, alone), '130 121 121')
        same(f'{where[0]}: PyTorch asked before Triton was loaded from elsewhere', asked(where, f'?{alone}', compiler, utils), '120 130 130')
        same(f'{where[0]}: a library that is not linked with the runtime', asked(where, CUDART, UNLINKED), '130 130 130')
        same(f'{where[0]}: a lower one stays', asked(where, compiler, utils, OUTBOARD_SOFT_CC='8.6'), '86 86 86')
        same(f'{where[0]}: turned off', asked(where, compiler, utils, OUTBOARD_COMPILERS='0'), '130 130 130')
finish()
