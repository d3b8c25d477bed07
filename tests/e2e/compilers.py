# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""`outboard run` makes compilers that programs call hand out PTX, on the software device only: the
variables that it sets, and what programs get from NVRTC, here a stand-in in several copies.

    compilers.py OUTBOARD SERVER PROGRAM LIBRARY_B LIBRARY_C
"""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
import waiting
from outboard_test import ENV, Server, check, finish

OUTBOARD, SERVER, PROGRAM, *LIBRARIES = sys.argv[1:]
SET = 'CUPY_COMPILE_WITH_PTX', 'CUPY_CACHE_DIR', 'NUMBA_FORCE_CUDA_CC', 'TRITON_PTXAS_PATH', 'TRITON_PTXAS_BLACKWELL_PATH'
BASE = {k: v for k, v in ENV.items() if k not in SET}


def run(where, *command, **env):
    done = subprocess.run([OUTBOARD, 'run', *where, '--', *command], capture_output=True, text=True, timeout=waiting.LONG, env={**BASE, **env})
    return done.stdout


def variables(where, **env):
    """The variables that a program sees, of those that matter, and whether the library is preloaded."""
    seen = dict(line.split('=', 1) for line in run(where, 'env', **env).splitlines() if '=' in line)
    return {name: seen[name] for name in SET if name in seen}, 'liboutboard-compilers.so' in seen.get('LD_PRELOAD', '')


def expected(letter_kind, c='c'):
    """The program's output with PTX or with machine code."""
    out = []
    ptx = letter_kind == 'PTX'
    for way, copy, option, lowered in (('linked', 'a', '-arch=sm_80', None), ('linked', 'a', '-arch=sm_130', '-arch=sm_90'), ('linked', 'a', '-arch=compute_90', None),
                                       ('opened', 'b', '-arch=sm_80', None), ('opened', 'b', '--gpu-architecture=sm_121a', '--gpu-architecture=sm_90'),
                                       ('opened', c, '-arch=sm_80', None), ('opened', c, '--gpu-architecture=sm_121a', '--gpu-architecture=sm_90'),
                                       ('default', 'a', '-arch=sm_80', None)):
        text = f'{letter_kind} {copy} {lowered if ptx and lowered else option}'
        out.append(f'{way}: 0000 0 ' if 'compute' in option else f'{way}: 0000 {len(text) + 1} {text}')
    return '\n'.join([*out, 'next of the program: a, of the library: none', 'nvJitLink: none', ''])


def same(what, got, wanted):
    check(what, got == wanted, f'{got}\ninstead of\n{wanted}')


direct, dry = ['--direct'], ['--direct', '--driver', 'dryrun']
names, loaded = variables(direct)
check('direct: all variables are set', set(names) == set(SET), names)
check('direct: CuPy makes PTX and keeps it apart', names['CUPY_COMPILE_WITH_PTX'] == '1' and names['CUPY_CACHE_DIR'].endswith('/.cupy/kernel_cache_ptx'), names)
check('direct: the library is preloaded', loaded, names)
own = dict.fromkeys(SET, '/mine')
check('what the user has set stays', variables(direct, **own)[0] == own, variables(direct, **own))
known = {name: value for name, value in names.items() if name != 'NUMBA_FORCE_CUDA_CC'}
check('a capability that compilers know needs no other', variables(direct, OUTBOARD_SOFT_CC='12.1') == (known, True), variables(direct, OUTBOARD_SOFT_CC='12.1'))
check('OUTBOARD_COMPILERS=0: nothing is set', variables(direct, OUTBOARD_COMPILERS='0') == ({}, False), variables(direct, OUTBOARD_COMPILERS='0'))
check('dry run: nothing is set', variables(dry) == ({}, False), variables(dry))
check('dry run, OUTBOARD_COMPILERS=ptx: set', variables(dry, OUTBOARD_COMPILERS='ptx') == (names, True), variables(dry, OUTBOARD_COMPILERS='ptx'))

same('direct: PTX', run(direct, PROGRAM, *LIBRARIES), expected('PTX'))
same('a dry run: machine code', run(dry, PROGRAM, *LIBRARIES), expected('CUBIN'))
same('OUTBOARD_COMPILERS=0: machine code', run(direct, PROGRAM, *LIBRARIES, OUTBOARD_COMPILERS='0'), expected('CUBIN'))
same('one copy by two names', run(direct, PROGRAM, LIBRARIES[0], LIBRARIES[0]), expected('PTX', 'b'))

with Server(SERVER, '--driver', 'soft', '--warm', '0') as soft, Server(SERVER, '--driver', 'dryrun') as other:
    to_soft, to_other = ['--server', soft.url], ['--server', other.url]
    check('a server that had no session yet: set', variables(to_soft) == (names, True), variables(to_soft))
    check('a lower capability for one program', variables(to_soft, OUTBOARD_SOFT_CC='8.0') == (known, True), variables(to_soft, OUTBOARD_SOFT_CC='8.0'))
    same('through a server: PTX', run(to_soft, PROGRAM, *LIBRARIES), expected('PTX'))
    check('a server whose device runs machine code: nothing is set', variables(to_other) == ({}, False), variables(to_other))
    same('a server whose device runs machine code: machine code', run(to_other, PROGRAM, *LIBRARIES), expected('CUBIN'))
    both = ['--server', f'{soft.url},{other.url}']
    check('servers of both kinds: nothing is set', variables(both) == ({}, False), variables(both))
check('no server: nothing is set', variables(['--server', 'unix:/no/such/socket']) == ({}, False), variables(['--server', 'unix:/no/such/socket']))

# the stand-in for ptxas
with tempfile.TemporaryDirectory() as folder:
    tool = names['TRITON_PTXAS_PATH']
    text, out = pathlib.Path(folder, 'a.ptx'), pathlib.Path(folder, 'a.cubin')
    text.write_bytes(b'.version 8.0\n' * 20000)
    done = subprocess.run([tool, '-v', '--gpu-name=sm_90a', str(text), '-o', str(out)], capture_output=True, text=True, timeout=waiting.LONG)
    check('ptxas: the text and a NUL', done.returncode == 0 and out.read_bytes() == text.read_bytes() + b'\0', done)
    done = subprocess.run([tool, '--version'], capture_output=True, text=True, timeout=waiting.LONG, env=BASE)
    check('ptxas: a version', 'release 13.0' in done.stdout and not done.stderr, done)
    for words, code in ((['-o', str(out)], 2), ([str(text)], 2), ([f'{folder}/none.ptx', '-o', str(out)], 1), ([str(text), '-o', f'{folder}/none/a'], 1)):
        done = subprocess.run([tool, *words], capture_output=True, text=True, timeout=waiting.LONG)
        check(f'ptxas {" ".join(os.path.basename(word) for word in words)}: {code}', done.returncode == code and done.stderr, done)
finish()
