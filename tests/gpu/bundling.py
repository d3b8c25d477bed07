# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""`tools/dev/gpu-check bundle`: one tar with the parts of source and build tree that the check
needs, in the same places, so that the same script runs there.

Shared libraries beyond the C library lie in build/lib, where the programs' RPATH points. It is a
build product: it may hold NVIDIA's CUDA runtime, which may be passed on with a program but does
not belong in a repository.
"""
import argparse
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

import check

SOURCES = ['tools/dev/gpu-check', 'tests/gpu/*.py', 'tests/gpu/frameworks/*.py', 'tests/gpu/frameworks/ptx_only/ptxas', 'tests/programs/run.py', 'tests/programs/programs.list',
           'tests/programs/expected/*.txt', check.SETUP, 'LICENSE']
# Not in the bundle: the C library, whose parts must match the target's loader, and the libraries
# that come with the driver.
SYSTEM = re.compile(r'(ld-linux|linux-vdso|libc\.|libm\.|libdl\.|libpthread\.|librt\.|libresolv\.|libcuda\.so|libnvidia-)')
LIMIT = 64 << 20


def build(folder, more):
    """Builds what the check needs and the targets in `more`. Does nothing in a bundle, which has no
    build files."""
    if (folder / 'build.ninja').exists() and shutil.which('ninja'):
        if subprocess.run(['ninja', '-C', folder, *check.PROGRAMS, *check.LIBRARIES, *check.FILES, *more], check=False).returncode:
            sys.exit(f'gpu-check: {folder} does not build')


def is_elf(path):
    with open(path, 'rb') as file:
        return file.read(4) == b'\x7fELF'


def put(source, target):
    """Copies a file and removes debug information from the copy."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)
    if is_elf(target) and shutil.which('strip'):
        subprocess.run(['strip', '--strip-debug', target], check=False, stderr=subprocess.DEVNULL)


def libraries(folder, programs, tree):
    """Copies the libraries that the programs need: ours to the same places, others to build/lib.
    Returns the names of those that are missing."""
    missing = set()
    for program in programs:
        done = subprocess.run(['ldd', program], capture_output=True, text=True, check=False)
        for line in done.stdout.splitlines():
            found = re.match(r'\s*(\S+) => (not found|\S+)', line)
            if not found or SYSTEM.match(found[1]):
                continue
            path = pathlib.Path(os.path.abspath(found[2]))
            if found[2] == 'not found':
                missing.add(found[1])
            elif path.is_relative_to(folder):
                put(path, tree / 'build' / path.relative_to(folder))
            else:
                put(path, tree / 'build' / 'lib' / found[1])
    return missing


def fill(root, folder, cuda_programs, tree):
    """Copies everything into `tree`. Returns the names of files that are missing."""
    for pattern in SOURCES:
        for path in root.glob(pattern):
            put(path, tree / path.relative_to(root))
    (tree / 'gpu-check').symlink_to('tools/dev/gpu-check')
    built = check.PROGRAMS + check.LIBRARIES + check.FILES
    missing = {name for name in built if not (folder / name).exists()}
    for name in set(built) - missing:
        put(folder / name, tree / 'build' / name)
    # The programs of programs.list and the code that they load, but not their object files.
    sys.path.insert(0, str(root / 'tests' / 'programs'))
    import run  # noqa: PLC0415: needs the path above
    names = [p.binary for p in run.read_list()] + ['driver_kernels.ptx', 'driver_kernels.fatbin', 'driver_kernels.sass.fatbin']
    missing |= {name for name in names if not (cuda_programs / name).exists()}
    for name in set(names) - missing:
        put(cuda_programs / name, tree / 'build/tests/programs' / name)
    elf = [folder / name for name in check.PROGRAMS + check.LIBRARIES if (folder / name).exists()]
    elf += [cuda_programs / name for name in names if name not in missing and is_elf(cuda_programs / name)]
    return missing | libraries(folder, elf, tree)


def main(root, version, words):
    parser = argparse.ArgumentParser(prog='gpu-check bundle', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('-b', '--build', default=root / 'build', type=pathlib.Path)
    parser.add_argument('--programs', type=pathlib.Path, help='the CUDA test programs of another build')
    parser.add_argument('file', nargs='?', default=f'outboard-gpu-check-{platform.machine()}.tar.xz', help='its ending chooses: .tar.xz, .tar.gz or .tar')
    parser.add_argument('--no-build', action='store_true', help='do not bring the build directory up to date first')
    arguments = parser.parse_args(words)
    folder = arguments.build.resolve()
    if not arguments.no_build:
        build(folder, [] if arguments.programs else ['programs'])
    name = f'outboard-gpu-check-{platform.machine()}'
    with tempfile.TemporaryDirectory() as work:
        tree = pathlib.Path(work, name)
        missing = fill(root, folder, (arguments.programs or folder / 'tests/programs').resolve(), tree)
        if missing:
            print(f'gpu-check: missing, build it first: {" ".join(sorted(missing))}', file=sys.stderr)
            return 1
        (tree / 'VERSION').write_text(version + '\n', encoding='utf-8')
        packing = {'.xz': 'xz', '.gz': 'gz'}.get(pathlib.Path(arguments.file).suffix, '')
        with tarfile.open(arguments.file, 'w:' + packing) as tar:
            tar.add(tree, name)
    size = os.path.getsize(arguments.file)
    print(f'{arguments.file}: {size / 1e6:.1f} MB' + (f', more than {LIMIT >> 20} MiB' if size > LIMIT else ''))
    return 0
