# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Tests the command `outboard`: exit codes, and text that its output must contain.

    command.py OUTBOARD SERVER
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
from outboard_test import Server  # noqa: E402

OUTBOARD, SERVER = sys.argv[1:3]
NOWHERE = 'unix:/nowhere/at/all'
CASES = [
    # arguments, exit code, output stream, text that it must contain
    ([], 2, 'err', 'usage: outboard VERB'),
    (['--help'], 0, 'out', 'run a CUDA program'),
    # the compute library's verbs come last, under a separate heading
    (['--help'], 0, 'out', 'bash, zsh or fish\n\nA pool of servers'),
    (['--help'], 0, 'out', 'Compute library, works without a server'),
    (['--help'], 0, 'out', 'those of a server:\n\n  kzg'),
    (['--version'], 0, 'out', 'protocol 2'),
    (['fly'], 2, 'err', "no verb 'fly'"),
    (['run', '--help'], 0, 'out', '--server URL'),
    (['run'], 2, 'err', 'a command is missing'),
    (['run', '--nonsense', 'true'], 2, 'err', '--nonsense'),
    (['run', '--server'], 2, 'err', 'needs a value'),
    (['run', '--server', 'http://x', '--', 'true'], 2, 'err', 'tcp://'),
    (['run', '--server', NOWHERE, '--', '/no/such/program'], 127, 'err', 'No such file'),
    (['run', '--server', NOWHERE, '--', 'no-such-program'], 127, 'err', 'not found in PATH; for a program in this directory write ./no-such-program'),
    (['run', '--server', NOWHERE, '--', '/etc/passwd'], 126, 'err', 'Permission denied'),
    (['run', '--server', NOWHERE, '--', 'sh', '-c', 'exit 7'], 7, 'out', ''),
    (['run', '--server', NOWHERE, '--', 'sh', '-c', 'kill -9 $$'], -signal.SIGKILL, 'out', ''),
    (['run', '--server', NOWHERE, '--', 'sh', '-c', 'echo $OUTBOARD_SERVER $LD_PRELOAD'], 0, 'out', 'libcuda.so.1'),
    (['run', '--direct', '--', 'sh', '-c', 'echo $LD_PRELOAD'], 0, 'out', 'softdevice'),
    (['check', '--server', NOWHERE], 1, 'err', 'Start a server there'),
    (['check', 'extra'], 2, 'err', "unexpected 'extra'"),
    (['info', '--server', NOWHERE], 1, 'err', 'there is no such socket'),
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
    (['bench'], 2, 'err', 'what is to be measured'),
    # suggestions
    (['rnu', 'x'], 2, 'err', "outboard: there is no verb 'rnu'; did you mean 'run'? 'outboard --help' shows the usage\n"),
    (['run', '--sever', 'x'], 2, 'err', "outboard run: there is no option --sever; did you mean --server? 'outboard run --help' shows the usage\n"),
    (['run', '-x', 'true'], 2, 'err', "outboard run: there is no option -x; 'outboard run --help' shows the usage\n"),
    (['run', '-xy', 'true'], 2, 'err', "outboard run: there is no option -x; 'outboard run --help' shows the usage\n"),
    (['check', '--servr=x'], 2, 'err', 'there is no option --servr=x; did you mean --server?'),
    (['top', '--intervl', '3'], 2, 'err', 'there is no option --intervl; did you mean --interval?'),
    (['top', '--json=1'], 2, 'err', "outboard top: --json takes no value; 'outboard top --help' shows the usage\n"),
    (['token', 'create', '--token-sessions', '5'], 2, 'err', "outboard token: there is no option --token-sessions; 'outboard token --help' shows the usage\n"),
    (['token', 'lst'], 2, 'err', "there is no verb 'lst'; did you mean 'list'?"),
    (['token'], 2, 'err', 'say create, list or revoke'),
    (['token', 'create', '--scope', 'all'], 2, 'err', "outboard token: --scope takes use, look, serve or admin, not 'all'"),
    (['token', 'create', '--share', '2'], 2, 'err', '--share takes a number from 0.01 to 1'),
    (['completion', 'csh'], 2, 'err', "there is no completion for the shell 'csh'"),
    (['completion'], 2, 'err', 'say for which shell: bash, zsh or fish'),
    (['token', 'create', '--nmae', 'x'], 2, 'err', 'did you mean --name?'),
    (['token', 'list', '--file', '/nowhere/tokens'], 1, 'err', "/nowhere/tokens: No such file or directory. 'outboard token create --file /nowhere/tokens' makes it\n"),
    (['token', 'revoke', '--file', '/nowhere/tokens', '01234567'], 1, 'err', 'No such file or directory'),
    (['cert', '--ket', 'x'], 2, 'err', 'did you mean --key?'),
    (['config', 'chekc'], 2, 'err', "there is no verb 'chekc'; did you mean 'check'?"),
    (['bench', 'lauch'], 2, 'err', "called 'lauch'; did you mean 'launch'?"),
    (['kzg', 'comit'], 2, 'err', "there is no verb 'comit'; did you mean 'commit'?"),
    (['kzg', 'commit', '--blbs', 'x'], 2, 'err', 'there is no option --blbs; did you mean --blobs?'),
    (['kzg', 'commit', '--blobs'], 2, 'err', '--blobs needs a value'),
    (['msm', 'gne'], 2, 'err', "there is no verb 'gne'; did you mean 'gen'?"),
    (['msm', '--ponts', 'x'], 2, 'err', 'did you mean --points?'),
    (['ntt', 'bench', '--form', '3'], 2, 'err', 'there is no option --form; did you mean --from?'),
    (['ntt', 'stray'], 2, 'err', "there is no verb 'stray'"),
    (['rqa', 'swep'], 2, 'err', "there is no verb 'swep'; did you mean 'sweep'?"),
    (['rqa', 'sweep', 'd', '--grdi', 'x'], 2, 'err', 'there is no option --grdi; did you mean --grid?'),
    (['rqa', 'measures', 'x'], 2, 'err', "outboard rqa measures: unexpected 'x'"),
    (['server'], 2, 'err', 'cordon'),
    (['server', 'lits'], 2, 'err', "there is no verb 'lits'; did you mean 'list'?"),
    (['server', 'drain'], 2, 'err', 'name a server'),
    (['session', 'kill'], 2, 'err', 'name a session'),
    (['queue', '--interval', '0'], 2, 'err', '0.1 to 3600'),
    # arguments after -- belong to the program, --help too
    (['run', '--server', NOWHERE, '--', 'echo', '--help'], 0, 'out', '--help'),
    (['bench', 'launch', '--rounds', '0'], 2, 'err', '1 to 64'),
    (['bench', 'startup'], 2, 'err', 'needs a command'),
]

# Every verb and its sub-verbs print their usage with --help, whatever other arguments are given.
HELP = [([verb], more) for verb, below in {
    'run': ((), ('--direct',)), 'check': ((), ('--server', NOWHERE)), 'info': ((),), 'top': ((), ('--once',)), 'config': ((), ('check',), ('show',)),
    'login': ((), ('--name', 'x')), 'logout': ((), ('--all',)), 'server': ((), ('list',), ('info',), ('cordon',), ('uncordon',), ('drain',), ('forget',)),
    'gpu': ((), ('list',)), 'session': ((), ('list',), ('info',), ('kill',)), 'queue': ((),), 'quota': ((),), 'events': ((),),
    'bench': ((), *((kind,) for kind in ('launch', 'latency', 'bandwidth', 'objects', 'all', 'startup'))),
    'token': ((), ('create',), ('list', '--file', '/nowhere'), ('revoke',)), 'cert': ((), ('--cert', '/nowhere')), 'completion': ((),),
    'kzg': ((), *((action,) for action in ('commit', 'prove', 'verify', 'cells', 'recover', 'verify-cells', 'bench'))),
    'msm': ((), ('gen',), ('tune',), ('calibrate',), ('bench',)), 'ntt': ((), ('bench',), ('--in', 'x')),
    'rqa': ((), ('run',), ('sweep',), ('plot',), ('serve',), ('measures',), ('options',))}.items() for more in below]


def odd_places(env):
    """Tests `outboard run` without a server, installed in a folder whose name LD_PRELOAD and
    LD_LIBRARY_PATH cannot contain. Returns a list of errors."""
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
        link.parent.chmod(0o777)  # another user could put a library there
        library('client-shim/libcuda.so.1', maps('--server', NOWHERE, XDG_RUNTIME_DIR='/nowhere'))
        tmp = pathlib.Path(f'/tmp/outboard-run-{os.geteuid()}/{link.parent.name}')
        done = maps('--server', NOWHERE)
        if str(link.parent) in done.stderr + done.stdout or f'{top}/client-shim/libcuda.so.1' not in done.stdout:
            wrong.append(f'a folder that others can write to is taken: {done.stdout[-500:]} {done.stderr}')
        shutil.rmtree(tmp, ignore_errors=True)
    return wrong


def look(env, url):
    """Returns the number of failed cases."""
    bad = 0
    cases = CASES + [
        (['check', '--server', url], 0, 'out', 'all is well'),
        *(([*verb, *more, asks], 0, 'out', f'usage: outboard {verb[0]}') for verb, more in HELP for asks in ('-h', '--help')),
        (['info', '--server', url], 0, 'out', 'compute capability'),
        (['bench', 'latency', '--rounds', '1', '--json', '--server', url], 0, 'out', '"ratio"'),
    ]
    for arguments, code, where, words in cases:
        done = subprocess.run([OUTBOARD, *arguments], env=env, capture_output=True, text=True, timeout=200)
        text = done.stdout if where == 'out' else done.stderr
        if done.returncode != code or words not in text:
            bad += 1
            print(f'FAIL outboard {" ".join(arguments)}: exit {done.returncode} instead of {code}, or no "{words}" in: {text[:300]!r} (stderr {done.stderr[:300]!r})')
    for arguments in ['--version'], ['--help'], ['check', '--server', url], ['token', '--help'], ['top', '--once', '--server', url], ['top', '--server', url]:
        with open('/dev/full', 'w', encoding='utf-8') as full:
            done = subprocess.run([OUTBOARD, *arguments], env=env, stdout=full, stderr=subprocess.PIPE, text=True, timeout=200, check=False)
        if done.returncode != 1 or 'the output could not be written' not in done.stderr:
            bad += 1
            print(f'FAIL outboard {" ".join(arguments)} onto a full disk: exit {done.returncode}, stderr {done.stderr[:300]!r}')
    for text in odd_places(env):
        bad += 1
        print(f'FAIL {text}')
    print(f'{len(cases)} cases')
    return bad


def main():
    bad = 0
    env = {k: v for k, v in os.environ.items() if not k.startswith('OUTBOARD_SERVER')}
    with Server(SERVER, '--driver', 'null') as server:
        bad += look(env, server.url)
    print(f'{bad} wrong')
    return 1 if bad else 0


sys.exit(main())
