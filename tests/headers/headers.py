# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Every header of the project, and every generated one, compiles alone.

    headers.py COMPILER SOURCE BUILD [FOLDER...]    the folders are left out: their libraries are missing
"""
import concurrent.futures
import pathlib
import subprocess
import sys

FOLDERS = ('base', 'compute', 'compression', 'image', 'front', 'protocol', 'transport', 'loadbalancer', 'softdevice', 'server', 'client-shim', 'tools')
# Parts of files that are compiled more than once; they cannot be compiled alone:
# softdevice/core/engine/interp.c, compute/rqa/lanes.c, the fields of compute/field.
FRAGMENTS = {'field_body.h', 'lanes_body.h', 'launch_calls.h', 'interp_access.h', 'interp_ctl.h', 'interp_elt.h', 'interp_load.h', 'interp_mem.h', 'interp_pred.h', 'interp_quad.h', 'interp_sync.h', 'interp_vec.h', 'interp_vector.h', 'interp_float.h', 'lanes_real.h', 'lanes_runs.h', 'lanes_sieve.h', 'lanes_walk.h', 'ops_carry.h', 'ops_elt.h', 'ops_other.h', 'ops_undef.h', 'ops_vector.h'}


def main() -> int:
    compiler, source, build = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    headers = [h for f in FOLDERS for h in sorted((source / f).rglob('*.h')) if h.name not in FRAGMENTS]
    headers = [h for h in headers if not any(h.is_relative_to(source / folder) for folder in sys.argv[4:])]
    headers += sorted((build / 'protocol').glob('*.h'))

    def compile_one(header):
        done = subprocess.run([compiler, '-std=gnu11', '-D_GNU_SOURCE', '-DOB_VERSION="0"', '-Wall', '-Wextra', '-Werror', '-fsyntax-only', f'-I{source}', f'-I{build}', '-xc', '-'],
                              input=f'#include "{header}"\nint nothing;\n', text=True, capture_output=True)
        return header, done.returncode, done.stderr

    bad = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for header, code, text in pool.map(compile_one, headers):
            if code:
                bad += 1
                print(f'{header}: does not compile alone\n{text}')
    print(f'{len(headers)} headers, {bad} do not compile alone')
    return 1 if bad or not headers else 0


sys.exit(main())
