# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The users' command: exit codes, and words that must stand in what it prints.

    command.py OUTBOARD SERVER
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

OUTBOARD, SERVER = sys.argv[1:3]
NOWHERE = 'unix:/nowhere/at/all'
CASES = [
    # arguments, exit code, where to look, words
    ([], 2, 'err', 'usage: outboard VERB'),
    (['--help'], 0, 'out', 'run a CUDA program'),
    (['--version'], 0, 'out', 'protocol 1'),
    (['fly'], 2, 'err', "no verb 'fly'"),
    (['run', '--help'], 0, 'out', '--server URL'),
    (['run'], 2, 'err', 'a command is missing'),
    (['run', '--nonsense', 'true'], 2, 'err', '--nonsense'),
    (['run', '--server'], 2, 'err', 'needs a value'),
    (['run', '--server', 'http://x', '--', 'true'], 2, 'err', 'tcp://'),
    (['run', '--server', NOWHERE, '--', '/no/such/program'], 127, 'err', 'No such file'),
    (['run', '--server', NOWHERE, '--', '/etc/passwd'], 126, 'err', 'Permission denied'),
    (['run', '--server', NOWHERE, '--', 'sh', '-c', 'exit 7'], 7, 'out', ''),
    (['run', '--server', NOWHERE, '--', 'sh', '-c', 'kill -9 $$'], -signal.SIGKILL, 'out', ''),
    (['run', '--server', NOWHERE, '--', 'sh', '-c', 'echo $OUTBOARD_SERVER $LD_PRELOAD'], 0, 'out', 'libcuda.so.1'),
    (['run', '--direct', '--', 'sh', '-c', 'echo $LD_PRELOAD'], 0, 'out', 'softdevice'),
    (['check', '--server', NOWHERE], 1, 'err', 'start a server there'),
    (['check', 'extra'], 2, 'err', "unexpected 'extra'"),
    (['info', '--server', NOWHERE], 1, 'err', 'nothing answers'),
    (['top', '--once', '--server', NOWHERE], 1, 'err', 'No such file'),
    (['top', '--interval', '0'], 2, 'err', '0.1 to 3600'),
    (['config', 'check'], 2, 'err', 'config check FILE'),
    (['config', 'check', '/nowhere/at/all'], 2, 'err', 'cannot read'),
    (['check', '--server', NOWHERE + ',unix:/nowhere/else'], 1, 'out', '2 do not answer'),
    (['run', '--share', '2', '--', 'true'], 2, 'err', '0.01 to 1'),
    (['run', '--priority', 'urgent', '--', 'true'], 2, 'err', 'low, normal or high'),
    (['run', '--vram', 'much', '--', 'true'], 2, 'err', '4GiB'),
    (['run', '--policy', 'best', '--', 'true'], 2, 'err', 'least-load'),
    (['run', '--vram', '4GiB', '--share', '0.5', '--priority', 'low', '--', 'sh', '-c', 'echo $OUTBOARD_VRAM $OUTBOARD_SHARE $OUTBOARD_PRIORITY'], 0, 'out', '4GiB 0.5 low'),
    (['bench', 'latency', '--samples', '99'], 2, 'err', '100 to 4000'),
    (['bench'], 2, 'err', 'to measure'),
    (['bench', 'launch', '--rounds', '0'], 2, 'err', '1 to 64'),
    (['bench', 'startup'], 2, 'err', 'needs a command'),
]


def odd_places(env):
    """What is wrong with `outboard run` from a folder that the loader's variables cannot hold, and without a server: a list of complaints."""
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        top, runtime = pathlib.Path(folder, 'a b:c;d'), pathlib.Path(folder, 'runtime')
        built = pathlib.Path(OUTBOARD).resolve().parents[1]
        for name in ('tools/outboard', 'client-shim/libcuda.so.1', 'softdevice/liboutboard-softdevice.so'):
            if (built / name).exists():
                (top / name).parent.mkdir(parents=True)
                shutil.copy2(built / name, top / name)
        runtime.mkdir(mode=0o700)

        def maps(*options, **more):
            done = subprocess.run([top / 'tools/outboard', 'run', *options, '--', 'sh', '-c', 'cat /proc/$$/maps; ls -l ${LD_LIBRARY_PATH%%:*}'], capture_output=True,
                                  text=True, timeout=200, env={**env, 'XDG_RUNTIME_DIR': str(runtime), **more})
            if 'cannot be preloaded' in done.stderr:
                wrong.append(f'the loader complains: {done.stderr}')
            return done

        def library(name, done):
            if f'{top}/{name}' not in done.stdout or 'libcuda.so.1 -> ' not in done.stdout:
                wrong.append(f'{name} is not loaded, or not found as libcuda.so.1: {done.stdout[-500:]} {done.stderr}')

        for _ in 'made', 'found':
            library('client-shim/libcuda.so.1', maps('--server', NOWHERE))
        link = next(runtime.glob('outboard-run-*/*/libcuda.so.1'), None)
        if link is None:
            return [*wrong, 'no link was made']
        link.unlink()
        link.symlink_to('/nowhere')
        library('client-shim/libcuda.so.1', maps('--server', NOWHERE))
        if (top / 'softdevice').exists():
            library('softdevice/liboutboard-softdevice.so', maps('--direct'))
        link.parent.chmod(0o777)  # somebody else could put a library there
        library('client-shim/libcuda.so.1', maps('--server', NOWHERE, XDG_RUNTIME_DIR='/nowhere'))
        tmp = pathlib.Path(f'/tmp/outboard-run-{os.geteuid()}/{link.parent.name}')
        done = maps('--server', NOWHERE)
        if str(link.parent) in done.stderr + done.stdout or f'{top}/client-shim/libcuda.so.1' not in done.stdout:
            wrong.append(f'a folder that others can write to is taken: {done.stdout[-500:]} {done.stderr}')
        shutil.rmtree(tmp, ignore_errors=True)
    return wrong


def main():
    bad = 0
    env = {k: v for k, v in os.environ.items() if not k.startswith('OUTBOARD_SERVER')}
    server = subprocess.Popen([SERVER, '--listen', 'tcp://127.0.0.1:0', '--driver', 'null'], stderr=subprocess.PIPE, text=True)
    url = re.search(r'listening on (\S+)', server.stderr.readline()).group(1)
    cases = CASES + [
        (['check', '--server', url], 0, 'out', 'all is well'),
        (['info', '--server', url], 0, 'out', 'compute capability'),
        (['bench', 'latency', '--rounds', '1', '--json', '--server', url], 0, 'out', '"ratio"'),
    ]
    try:
        for arguments, code, where, words in cases:
            done = subprocess.run([OUTBOARD, *arguments], env=env, capture_output=True, text=True, timeout=200)
            text = done.stdout if where == 'out' else done.stderr
            if done.returncode != code or words not in text:
                bad += 1
                print(f'FAIL outboard {" ".join(arguments)}: exit {done.returncode} instead of {code}, or no "{words}" in: {text[:300]!r} (stderr {done.stderr[:300]!r})')
        for text in odd_places(env):
            bad += 1
            print(f'FAIL {text}')
    finally:
        server.terminate()
        server.wait(10)
    print(f'{len(cases)} cases, {bad} wrong')
    return 1 if bad else 0


sys.exit(main())
