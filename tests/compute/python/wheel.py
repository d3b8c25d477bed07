# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Installs the wheel of outboard-compute into a fresh virtual environment, without network, builds it
again with pip, and runs the package's tests there; with mypy, also a strict type check.

    wheel.py SOURCE WHEEL CC [NAME OF A TEST...]

Exit code 77: no Python with numpy and venv was found.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
HERE = pathlib.Path(__file__).resolve().parent
PROBE = 'import numpy, venv, ensurepip, sys; print(numpy.__path__[0], sys.prefix != sys.base_prefix)'
SYSTEM_PYTHON = '/usr/bin/python3'  # has the packages that tools/dev/install-packages installs


def interpreter():
    """A Python that has numpy and can create virtual environments, and the folder of its numpy if a
    new environment does not find it; or None and the reason."""
    for python in (sys.executable, SYSTEM_PYTHON):
        done = subprocess.run([python, '-c', PROBE], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            folder, virtual = done.stdout.rsplit(maxsplit=1)
            return python, pathlib.Path(folder).parent if virtual == 'True' else None
    return None, done.stderr.strip().splitlines()[-1]


def run(*command, env=None):
    done = subprocess.run([str(word) for word in command], env=env, check=False)
    if done.returncode:
        sys.exit(f'FAIL {" ".join(map(str, command))}: exit {done.returncode}')


def type_check(python, env):
    if subprocess.run([python, '-c', 'import mypy'], capture_output=True, check=False).returncode:
        print('mypy is not installed: the type check is left out')
        return
    run(python, '-m', 'mypy', '--strict', '--cache-dir', os.devnull, '-p', 'outboard_compute', env=env)
    run(python, '-m', 'mypy', '--strict', '--cache-dir', os.devnull, HERE / 'typed_use.py', env=env)


def main():
    source, wheel, cc = sys.argv[1:4]
    library = pathlib.Path(wheel).resolve().parents[1] / 'engine/liboutboard.so.0'
    names = sys.argv[4:] or sorted(path.stem for path in HERE.glob('test_*.py'))
    python, extra = interpreter()
    if not python:
        print(f'skipped: {sys.executable} and {SYSTEM_PYTHON} lack numpy or venv ({extra}); '
              '`tools/dev/install-packages test` installs them')
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        # The tests must not use the user's cache of measured speeds or the user's site-packages.
        env = dict(os.environ, XDG_CACHE_HOME=folder, PYTHONNOUSERSITE='1', PYTHONDONTWRITEBYTECODE='1',
                   OUTBOARD_SOURCE=source, OUTBOARD_CC=cc)
        for name in ('PYTHONPATH', 'OUTBOARD_COMPUTE_LIBRARY'):
            env.pop(name, None)
        run(python, '-m', 'venv', '--system-site-packages', f'{folder}/env', env=env)
        inside = f'{folder}/env/bin/python'
        if extra:
            site, = pathlib.Path(f'{folder}/env/lib').glob('python*/site-packages')
            (site / 'numpy_of_the_caller.pth').write_text(f'{extra}\n', encoding='utf-8')
        run(inside, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-index',
            '--no-deps', '--force-reinstall', wheel, env=env)
        # pip builds the same file through the hooks of PEP 517.
        run(inside, '-m', 'pip', 'wheel', '--quiet', '--disable-pip-version-check', '--no-index', '--no-deps',
            '--no-build-isolation', '--config-settings', f'library={library}', '--wheel-dir', folder,
            f'{source}/compute/python', env=env)
        if (pathlib.Path(folder) / pathlib.Path(wheel).name).read_bytes() != pathlib.Path(wheel).read_bytes():
            sys.exit('FAIL: the wheel that pip builds differs from the one of `ninja wheel`')
        os.chdir(HERE)
        run(inside, '-W', 'error', '-m', 'unittest', *names, env=env)
        type_check(inside, env)
    return 0


sys.exit(main())
