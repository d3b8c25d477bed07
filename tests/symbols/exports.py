# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The two libraries named libcuda.so.1 export exactly the names of the specification, which are
those of the toolkit's link stub, where one is installed; libnvidia-ml.so.1 those of nvml.api."""
import pathlib
import re
import subprocess
import sys

STUBS = ('/usr/local/cuda/lib64/stubs/libcuda.so', '/usr/local/cuda/targets/x86_64-linux/lib/stubs/libcuda.so')
COUNT_13_0 = 637
NVML_13_0 = 429


def exported(path) -> set:
    out = subprocess.run(['nm', '-D', '--defined-only', path], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split('@')[0] for line in out.splitlines() if line.split()[-2] not in 'A'}


def main() -> int:
    shim, soft, build, management, api = sys.argv[1:6]
    spec = set(re.findall(r'\bcu[A-Z]\w+', (pathlib.Path(build) / 'protocol' / 'exports.map').read_text()))
    bad = 0

    def compare(what, have, want):
        nonlocal bad
        for name in sorted(want - have):
            print(f'{what}: {name} is missing')
            bad += 1
        for name in sorted(have - want):
            print(f'{what}: {name} should not be there')
            bad += 1

    compare('client shim', exported(shim), spec)
    compare('software device', exported(soft), spec)
    if len(spec) < COUNT_13_0:
        print(f'the specification lists {len(spec)} names, CUDA 13.0 has {COUNT_13_0}')
        bad += 1
    for stub in STUBS:
        if pathlib.Path(stub).exists():
            compare('against the toolkit\'s stub', spec, {n for n in exported(stub) if n.startswith('cu')})
            break
    listed = {word for line in pathlib.Path(api).read_text().split('\n') if not line.startswith('#') for word in re.findall(r'\bnvml[A-Z]\w*', line)}
    compare('NVML', exported(management), listed)
    if len(listed) < NVML_13_0:
        print(f'nvml.api lists {len(listed)} names, it had {NVML_13_0}')
        bad += 1
    for what, path, soname in (('client shim', shim, 'libcuda.so.1'), ('software device', soft, 'libcuda.so.1'), ('NVML', management, 'libnvidia-ml.so.1')):
        dynamic = subprocess.run(['readelf', '-d', path], capture_output=True, text=True, check=True).stdout
        if f'soname: [{soname}]' not in dynamic:
            print(f'{what}: its SONAME is not {soname}')
            bad += 1
        needed = set(re.findall(r'NEEDED.*\[(.*?)\]', dynamic))
        foreign = {n for n in needed if not re.match(r'(libc|libm|libdl|libpthread|ld-linux.*|libgcc_s|libasan|libubsan|libtsan)\.so', n)}
        if foreign:
            print(f'{what}: needs {", ".join(sorted(foreign))}; a guest in a foreign process needs libc alone')
            bad += 1
    print(f'{len(spec)} names, {bad} faults')
    return 1 if bad else 0


sys.exit(main())
