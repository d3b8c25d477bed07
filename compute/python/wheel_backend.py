# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Builds the wheel of outboard-compute. It needs nothing but Python's standard library.

    wheel_backend.py LIBRARY WHEEL

LIBRARY is the built liboutboard.so, WHEEL the file to write. The module is also a build backend
for pip (PEP 517): `pip wheel --config-settings library=LIBRARY compute/python`.

The wheel has the modules, `_abi.py` made from outboard.h, and the library. Its tag names
any Python 3, Linux and the processor architecture of the library. The same inputs give the same
file, byte for byte. tools/dev/make-wheel uses its functions for the wheel of the client.
"""
from __future__ import annotations

import base64
import hashlib
import os
import pathlib
import re
import struct
import sys
import tomllib
import zipfile

import abi

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MACHINES = {62: 'x86_64', 183: 'aarch64'}  # e_machine of ELF
EPOCH = (1980, 1, 1, 0, 0, 0)  # the modification time of every file in the wheel
LIBRARY_MODE, FILE_MODE = 0o100755, 0o100644


def version() -> str:
    """The version of the project."""
    found = re.search(r"version: '([^']+)'", (ROOT / 'meson.build').read_text(encoding='utf-8'))
    if not found:
        sys.exit('meson.build names no version')
    return found[1]


def machine(library: pathlib.Path) -> str:
    """The processor architecture of a library."""
    head = library.read_bytes()[:20]
    if head[:4] != b'\x7fELF':
        sys.exit(f'{library} is no ELF library: name the liboutboard.so that the build has made')
    number = struct.unpack('<H', head[18:20])[0]
    return MACHINES.get(number) or sys.exit(f'{library} is for the unknown machine {number}: add it to MACHINES')


def metadata(project: dict, text: str) -> str:
    """The file METADATA, version 2.1."""
    head = [('Metadata-Version', '2.1'), ('Name', project['name']), ('Version', version()),
            ('Summary', project['description']), ('License', project['license']),
            ('Author', project['authors'][0]['name']), ('Keywords', ','.join(project['keywords'])),
            ('Requires-Python', project['requires-python']), ('License-File', 'LICENSE'),
            *(('Requires-Dist', need) for need in project['dependencies']),
            *(('Classifier', name) for name in project['classifiers']),
            ('Description-Content-Type', 'text/markdown; charset=UTF-8; variant=GFM')]
    return ''.join(f'{name}: {value}\n' for name, value in head) + '\n' + text


def hashed(data: bytes) -> str:
    return 'sha256=' + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()


def record(files: dict[str, bytes], info: str) -> bytes:
    """The file RECORD of a wheel with these files."""
    lines = [f'{name},{hashed(data)},{len(data)}\n' for name, data in files.items()]
    return ''.join([*lines, f'{info}/RECORD,,\n']).encode()


def contents(library: pathlib.Path, tag: str) -> dict[str, bytes]:
    """The contents of each file in the wheel, by name."""
    project = tomllib.loads((HERE / 'pyproject.toml').read_text(encoding='utf-8'))['project']
    package = HERE / 'outboard_compute'
    files = {f'outboard_compute/{path.name}': path.read_bytes()
             for path in sorted(package.iterdir()) if path.suffix == '.py' or path.name == 'py.typed'}
    header = (HERE.parent / 'engine/outboard.h').read_text(encoding='utf-8')
    files['outboard_compute/_abi.py'] = abi.translate(header).encode()
    files['outboard_compute/liboutboard.so.0'] = library.read_bytes()
    info = f'outboard_compute-{version()}.dist-info'
    readme = (HERE / project['readme']).read_text(encoding='utf-8')
    files[f'{info}/METADATA'] = metadata(project, readme).encode()
    files[f'{info}/LICENSE'] = (ROOT / 'LICENSE').read_bytes()
    files[f'{info}/WHEEL'] = f'Wheel-Version: 1.0\nGenerator: outboard\nRoot-Is-Purelib: false\nTag: {tag}\n'.encode()
    files[f'{info}/RECORD'] = record(files, info)
    return files


def name_of(library: pathlib.Path) -> tuple[str, str]:
    """The file name of the wheel, and the tag in it."""
    tag = f'py3-none-linux_{machine(library)}'
    return f'outboard_compute-{version()}-{tag}.whl', tag


def pack(wheel: pathlib.Path, files: dict[str, bytes]) -> None:
    """Writes the wheel under another name and renames it, so that it is complete or absent. ELF
    files become executable."""
    part = wheel.with_name(wheel.name + '.part')
    with zipfile.ZipFile(part, 'w', zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (LIBRARY_MODE if data[:4] == b'\x7fELF' else FILE_MODE) << 16
            archive.writestr(entry, data)
    part.replace(wheel)


def write(library: pathlib.Path, wheel: pathlib.Path) -> None:
    pack(wheel, contents(library, name_of(library)[1]))


# ---- the hooks of PEP 517 ----

def build_wheel(wheel_directory: str, config_settings: dict | None = None,
                metadata_directory: str | None = None) -> str:
    """Called by pip."""
    named = (config_settings or {}).get('library') or os.environ.get('OUTBOARD_COMPUTE_LIBRARY')
    if not named or not pathlib.Path(named).is_file():
        sys.exit('the wheel needs the built library: run `ninja -C build wheel`, or add '
                 '--config-settings library=BUILD/compute/engine/liboutboard.so.0')
    library = pathlib.Path(named)
    write(library, pathlib.Path(wheel_directory) / name_of(library)[0])
    return name_of(library)[0]


def build_sdist(sdist_directory: str, config_settings: dict | None = None) -> str:
    """Called by pip. Always fails: the package cannot be built without the C library."""
    sys.exit('outboard-compute has no source package: build the wheel with `ninja -C build wheel`')


def main() -> None:
    library, wheel = map(pathlib.Path, sys.argv[1:3])
    if wheel.name != name_of(library)[0]:
        sys.exit(f'the wheel of {library} is called {name_of(library)[0]}, not {wheel.name}')
    write(library, wheel)


if __name__ == '__main__':
    main()
