# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Runs `meson install` into an empty folder and tests everything from there. The installed tree
must not need the build folder or the prefix it was built for.

    installed.py BUILD PREFIX [EXAMPLE...]
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BUILD, PREFIX, EXAMPLES = sys.argv[1], sys.argv[2], ['saxpy_driver'] + sys.argv[3:]


def run(*command, env=None):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
    if done.returncode:
        print(f'{" ".join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}')
        sys.exit(1)
    return done.stdout


def check_alias():
    """`ninja installed` must build every target that is installed: tools/quickstart and
    tools/dev/bundle build nothing else."""
    listed = run('ninja', '-C', BUILD, '-t', 'query', 'installed')
    with open(f'{BUILD}/meson-info/intro-targets.json', encoding='utf-8') as file:
        targets = [t for t in json.load(file) if t['installed'] and t['type'] != 'custom']
    missing = [os.path.relpath(t['filename'][0], BUILD) for t in targets
               if not re.search(rf'^[\s|]+{re.escape(os.path.relpath(t["filename"][0], BUILD))}$', listed, re.MULTILINE)]
    if missing or not targets:
        sys.exit(f'installed, but not in the alias "installed" of meson.build: {missing}')


def main():
    check_alias()
    env = {k: v for k, v in os.environ.items() if not k.startswith('OUTBOARD_') and k not in ('LD_LIBRARY_PATH', 'LD_PRELOAD', 'DESTDIR')}
    with tempfile.TemporaryDirectory() as top:
        stage = pathlib.Path(top, 'stage')
        run('meson', 'install', '--no-rebuild', '-C', BUILD, '--destdir', stage, env=env)
        env['XDG_RUNTIME_DIR'] = top  # where `outboard run --direct` makes its link
        # Move the tree: no file may contain the path that it was installed to.
        tree = pathlib.Path(top, 'elsewhere')
        shutil.move(str(stage / PREFIX.lstrip('/')), tree)
        with open(f'{BUILD}/meson-info/intro-installed.json', encoding='utf-8') as file:
            wanted = [os.path.relpath(p, PREFIX) for p in json.load(file).values()]
        for want in wanted + ['bin/outboard', 'bin/outboard-server', 'lib/outboard/libcuda.so.1', 'lib/outboard/liboutboard-softdevice.so']:
            if not (tree / want).exists():
                print(f'{want} is not in the installed tree')
                return 1
        server = subprocess.Popen([tree / 'bin/outboard-server', '--listen', 'tcp://127.0.0.1:0', '--driver', 'soft'], env=env,
                                  stderr=subprocess.PIPE, text=True)
        try:
            line = server.stderr.readline()
            url = re.search(r'listening on (\S+)', line)
            if not url:
                print(f'the installed server said: {line}')
                return 1
            told = run(tree / 'bin/outboard', 'check', '--server', url.group(1), env=env)
            if 'all is well' not in told or str(tree / 'lib/outboard') not in os.path.realpath(re.search(r'driver +([^,]+),', told).group(1)):
                print(f'check through the installed tree said:\n{told}')
                return 1
            for example in EXAMPLES:
                direct = run(tree / 'bin/outboard', 'run', '--direct', '--', f'{BUILD}/examples/{example}', env=env)
                remote = run(tree / 'bin/outboard', 'run', '--server', url.group(1), '--', f'{BUILD}/examples/{example}', env=env)
                if not remote or direct != remote:
                    print(f'{example}: direct {direct!r}, through the installed server {remote!r}')
                    return 1
        finally:
            server.terminate()
            server.wait(20)
    print(f'{", ".join(EXAMPLES)}: the same direct and through the installed tree')
    return 0


sys.exit(main())
