# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""C and C++ programs and Python use outboard.h and liboutboard.so, copied alone to an empty folder.
The library exports exactly the functions that outboard.h declares.

    installed.py SOURCE LIBRARY [C++ COMPILER]
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE, LIBRARY, CXX = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
SANITIZED = 'asan' in subprocess.run(['readelf', '-d', LIBRARY], capture_output=True, text=True, check=True).stdout


def run(*command, **kwargs):
    done = subprocess.run([str(x) for x in command], capture_output=True, text=True, timeout=120, **kwargs)
    if done.returncode:
        print(f'{" ".join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}')
        sys.exit(1)
    return done.stdout


def main():
    declared = set(re.findall(r'\b(outboard_\w+)\(', re.sub(r'/\*.*?\*/|//[^\n]*', '', (SOURCE / 'compute/engine/outboard.h').read_text(), flags=re.S)))
    exported = {line.split()[-1].split('@')[0] for line in run('nm', '-D', '--defined-only', LIBRARY).splitlines() if line.split()[-2] != 'A'}
    if exported != declared:
        print(f'exported and not declared: {sorted(exported - declared)}; declared and not exported: {sorted(declared - exported)}')
        return 1
    env = dict(os.environ, XDG_CACHE_HOME='/nonexistent')
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder)
        shutil.copy(SOURCE / 'compute/engine/outboard.h', top)
        shutil.copy(LIBRARY, top / 'liboutboard.so.0')
        (top / 'liboutboard.so').symlink_to('liboutboard.so.0')
        env['LD_LIBRARY_PATH'] = folder
        example = SOURCE / 'examples/msm.c'
        sums = set()
        compilers = [['cc', '-std=c99', '-pedantic']] + ([[CXX, '-x', 'c++', '-std=c++11', '-pedantic']] if CXX else [])
        if SANITIZED:
            print('a library with a sanitizer is not for other programs')
            return 0
        for number, compiler in enumerate(compilers):
            run(*compiler, '-Wall', '-Wextra', '-Werror', '-I', top, '-o', top / f'msm{number}', example, '-L', top, '-loutboard')
            sums.add(run(top / f'msm{number}', env=env).strip())
        run('cc', '-std=c11', '-pedantic', '-Wall', '-Werror', '-fsyntax-only', '-xc', top / 'outboard.h')
        if len(sums) != 1 or not re.fullmatch('[89ab][0-9a-f]{95}', next(iter(sums))):
            print(f'the example printed {sums}')
            return 1
        said = run(sys.executable, SOURCE / 'examples/rqa/sweep.py', top / 'liboutboard.so.0', env=env).splitlines()
        if len(said) != 12 or sum('DET 0.' in line or 'DET 1.' in line for line in said) != 8 or sum('series 2' in line for line in said) != 4:
            print('the Python example said:', *said, sep='\n')
            return 1
    print(f'{len(exported)} functions; C, C++ and Python')
    return 0


sys.exit(main())
