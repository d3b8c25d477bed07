#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The environment variables of a CUDA driver, and results that NVIDIA's libraries depend on. They
must be the same on the software device in the program's process and behind a server. Arguments:
outboard, server, the program environment.c, a fatbin with PTX and machine code, one with machine
code only."""
import os
import re
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
from outboard_test import ENV, Server, bad, check

outboard, server_path, program, fatbin, machine_code = sys.argv[1:6]
DEVICES = 4
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(('CUDA_', 'OUTBOARD_'))}
UUID = [f'GPU-303{i}2d6f-7574-626f-6172-642d736f6674' for i in range(DEVICES)]


def run(where, what, *arguments, **env):
    """Returns the program's output and its stderr."""
    done = subprocess.run([outboard, 'run', *where, '--', program, what, *arguments], env=dict(CLEAN, OUTBOARD_SOFT_DEVICES=str(DEVICES), OUTBOARD_SOFT_UUID=UUID[0], OUTBOARD_TIMEOUT='60', **env),
                          capture_output=True, text=True, timeout=180, check=False)
    return done.stdout if done.returncode == 0 else f'exit code {done.returncode}\n{done.stdout}{done.stderr}', done.stderr


def seen(out):
    """Returns the server's ordinals of the devices in the program's order. The UUIDs show them."""
    return [int(digit) for digit in re.findall(r'uuid 303(\d)', out)]


def visible(remote):
    """CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER in every form."""
    cases = [
        ([], [0, 1, 2, 3]), (['CUDA_VISIBLE_DEVICES=2'], [2]), (['CUDA_VISIBLE_DEVICES=3,0,1'], [3, 0, 1]),
        (['CUDA_VISIBLE_DEVICES='], []), (['CUDA_VISIBLE_DEVICES=-1'], []), (['CUDA_VISIBLE_DEVICES=4'], []), (['CUDA_VISIBLE_DEVICES=none'], []),
        (['CUDA_VISIBLE_DEVICES=0,2,-1,1'], [0, 2]), (['CUDA_VISIBLE_DEVICES=1,9,0'], [1]), (['CUDA_VISIBLE_DEVICES=1,,0'], [1]),
        (['CUDA_VISIBLE_DEVICES= 1 , 3 '], [1, 3]), (['CUDA_VISIBLE_DEVICES=1gpu,2'], [1, 2]), (['CUDA_VISIBLE_DEVICES=1,2,1'], []),
        ([f'CUDA_VISIBLE_DEVICES={UUID[2]}'], [2]), (['CUDA_VISIBLE_DEVICES=GPU-3033,GPU-3031'], [3, 1]), (['CUDA_VISIBLE_DEVICES=GPU-30'], []),
        (['CUDA_VISIBLE_DEVICES=GPU-3031,GPU-3,0'], [1]), (['CUDA_VISIBLE_DEVICES=0,GPU-3030'], []), (['CUDA_VISIBLE_DEVICES=MIG-3031'], []),
        (['CUDA_DEVICE_ORDER=PCI_BUS_ID'], [3, 2, 1, 0]), (['CUDA_DEVICE_ORDER=FASTEST_FIRST'], [0, 1, 2, 3]),
        (['CUDA_DEVICE_ORDER=PCI_BUS_ID', 'CUDA_VISIBLE_DEVICES=0,3'], [3, 0]),
        (['CUDA_DEVICE_ORDER=PCI_BUS_ID', 'CUDA_VISIBLE_DEVICES=GPU-3030,1'], [0, 2]),
    ]
    for settings, want in cases:
        direct, _ = run(['--direct'], 'devices', *settings)
        forwarded, _ = run(remote, 'devices', *settings)
        name = ' '.join(settings) or 'nothing set'
        check(f'{name}: the devices seen', seen(direct) == want, direct)
        check(f'{name}: the same behind a server', forwarded == direct, f'{direct}\n{forwarded}')
        check(f'{name}: no devices is error 100', ('init 100' in direct) == (not want), direct)
        # Each call identifies every device correctly: memory, ordinals, bus ids; an ordinal past
        # the last is refused.
        check(f'{name}: ordinals', all(re.search(rf'device {i}: .* is {i}, has memory', direct) and f'ordinal {i} of {i}' in direct for i in range(len(want))), direct)
        check(f'{name}: memory', direct.count('alloc 0 copies 0 0 same 1') == len(want), direct)
        mapped = [f'vmm 0 0 0 on {i} access 3 pointer {i} of {i}\n' in direct for i in range(len(want))]
        check(f'{name}: memory that is mapped', all(mapped), direct)
        check(f'{name}: past the last', f'one more {"101 101" if want else "3"}' in direct, direct)


def exported(remote):
    """Variables in the initial environment have the same effect as those that the program sets
    before cuInit."""
    for where in (['--direct'], remote):
        out, _ = run(where, 'devices', CUDA_VISIBLE_DEVICES='2,1')
        check(f'{where[0]}: inherited', seen(out) == [2, 1], out)
        out, said = run(where, 'devices', 'CUDA_VISIBLE_DEVICES=7', CUDA_VISIBLE_DEVICES='2,1')
        check(f'{where[0]}: set before cuInit', not seen(out), out)
        check(f'{where[0]}: a list that names nothing is explained', "'7' names no device; the program sees 0 of 4 devices" in said, said)
        _, said = run(where, 'devices', CUDA_VISIBLE_DEVICES='-1')
        check(f'{where[0]}: hiding on purpose is not remarked on', 'CUDA_VISIBLE_DEVICES' not in said, said)
        _, said = run(where, 'devices', CUDA_VISIBLE_DEVICES='-1', OUTBOARD_LOG='info')
        check(f'{where[0]}: it is where more is to be said', 'CUDA_VISIBLE_DEVICES=-1 hides every device' in said, said)
    out, said = run(['--server', 'unix:/nonexistent/socket'], 'devices', CUDA_VISIBLE_DEVICES='')
    check('a program without devices needs no server', 'init 100' in out and 'reach' not in said, out + said)


def server_side(remote, folder):
    """The server receives its own ordinals. The server's own variables apply first."""
    path = os.path.join(folder, 'records')
    run(remote, 'devices', CUDA_VISIBLE_DEVICES='3,1', OUTBOARD_TRACE=path)
    with open(path, encoding='utf-8') as file:
        text = file.read()
    check('memory of the right devices', re.findall(r'mem_alloc\(.*device=(\d)', text) == ['3', '1'], text)
    check('memory handles of the right devices', re.findall(r'cuMemCreate\(.*prop_location_id=(\d)', text) == ['3', '1'], text)
    check('access for the right devices', re.findall(r'cuMemSetAccess\(.*desc_location_id=\{(\d)\}', text) == ['3', '1'], text)
    check('questions to the right devices', re.findall(r'cuDeviceGetHostAtomicCapabilities\(.*device=(\d)', text) == ['3', '1'], text)
    for name in [name for name in ENV if name.startswith('CUDA_')]:  # servers get ENV
        del ENV[name]
    limited = Server(server_path, '--driver', 'soft', listen=f'unix:{folder}/limited', env={'OUTBOARD_SOFT_DEVICES': str(DEVICES), 'OUTBOARD_SOFT_UUID': UUID[0], 'CUDA_VISIBLE_DEVICES': '2,1,0'})
    try:
        out, _ = run(['--server', limited.url], 'devices')
        check("the server's list limits what there is", seen(out) == [2, 1, 0], out)
        out, _ = run(['--server', limited.url], 'devices', CUDA_VISIBLE_DEVICES='2,0')
        check("the program's list counts what the server offers", seen(out) == [0, 2], out)
    finally:
        check('the server ends', limited.stop())


def execution(remote):
    """CUDA_LAUNCH_BLOCKING, CUDA_MODULE_LOADING and the switches of the PTX compiler."""
    for settings, bad_launch in (([], 0), (['CUDA_LAUNCH_BLOCKING=0'], 0), (['CUDA_LAUNCH_BLOCKING=1'], 700)):
        for where in (['--direct'], remote, [*remote, '--sync']):
            out, _ = run(where, 'blocking', *settings)
            name = f'{" ".join([*settings, *where])}: '
            check(name + 'a launch that fails', out == f'context 0\nload 0\ngood launch 0\nbad launch {bad_launch}\nwait 700\n', out)
    loads = [
        ([], (2, 0, 0, 0)), (['CUDA_MODULE_LOADING=LAZY'], (2, 0, 0, 0)), (['CUDA_MODULE_LOADING=EAGER'], (1, 0, 0, 0)),
        (['CUDA_MODULE_LOADING=DEFAULT'], (2, 0, 0, 0)), (['CUDA_MODULE_DATA_LOADING=EAGER'], (2, 0, 0, 0)),
        (['CUDA_FORCE_PTX_JIT=1'], (2, 0, 0, 0)), (['CUDA_DISABLE_PTX_JIT=1'], (2, 223, 223, 223)), (['CUDA_DISABLE_JIT=1'], (2, 223, 223, 223)),
        (['CUDA_DISABLE_PTX_JIT=0', 'CUDA_DISABLE_JIT=1'], (2, 0, 0, 0)),
    ]
    for settings, want in loads:
        expected = 'context 0\n' + ''.join(f'{name} {code}\n' for name, code in zip(('mode', 'PTX', 'fatbin', 'library'), want))
        for where in (['--direct'], remote):
            out, _ = run(where, 'loading', fatbin, *settings)
            check(f'{" ".join(settings) or "nothing set"}, {where[0]}: loads', out == expected, out)
    for where in (['--direct'], remote):
        out, _ = run(where, 'loading', machine_code, 'CUDA_DISABLE_PTX_JIT=1')
        check(f'{where[0]}: without PTX there is nothing to disable', 'fatbin 209\nlibrary 209' in out, out)
        _, said = run(where, 'loading', fatbin, 'CUDA_DISABLE_PTX_JIT=1')
        check(f'{where[0]}: what to do is said', 'CUDA_DISABLE_PTX_JIT is set' in said and 'unset the variable' in said, said)


def answers(remote):
    """Calls of cuBLAS: library options without values, the green context of a stream, the limit for
    contexts shared with graphics."""
    direct, _ = run(['--direct'], 'answers')
    forwarded, _ = run(remote, 'answers')
    check('the same answers behind a server', direct == forwarded, f'{direct}\n{forwarded}')
    for n in range(3):
        check(f'{n} options without values', f'library, {n} options without values 0 kernel 0' in direct, direct)
    check('options must be there', 'options missing 1' in direct, direct)
    for i in range(4):
        check(f'stream {i} is in no green context', f'green context of stream {i}: 0 none' in direct, direct)
    check('a place for the answer must be there', 'of no place 1' in direct, direct)
    check('no context is shared with graphics', 'limit 8: 0 0\n' in direct and 'set 215' in direct, direct)


def traces(folder):
    """OUTBOARD_TRACE without a server: every call, with arguments, results and errors; the server's
    flag of the same name opens no file."""
    path = os.path.join(folder, 'calls')
    run(['--direct', '--trace', path], 'devices', CUDA_VISIBLE_DEVICES='1,0')
    with open(path, encoding='utf-8') as file:
        lines = file.read().splitlines()
    form = re.compile(r'\d+\.\d{9} #(\d+) lane (\d+) cu\w+(\(.*\)| = \d+( \(.*\))?)$')
    found = [form.match(line) for line in lines]
    check('every line has the form', lines and all(found), [line for line, match in zip(lines, found) if not match])
    numbers = [int(match[1]) for match in found if match]
    check('numbers count up', sorted(set(numbers)) == list(range(1, max(numbers, default=0) + 1)), numbers)
    text = '\n'.join(lines)
    check('arguments', re.search(r'cuMemAlloc_v2\(addr=0x\w+, bytes=0x100000\)', text), text)
    check('results', re.search(r'cuMemAlloc_v2 = 0 \(addr=0x\w+\)', text) and 'cuDeviceGetCount = 0 (count=2)' in text, text)
    check('texts', 'pci_bus_id="0000:b' in text, text)
    check('errors', 'cuDeviceGet = 101' in text, text)
    out, _ = run(['--direct', '--trace', path], 'reused', os.path.join(folder, 'own'))
    found = re.match(r'replaced (\d+), written (\d+)$', out.strip())
    check("a descriptor that the program has reused is not the trace's any more", found and int(found[1]) > 0 and found[2] == '0', out)
    _, said = run(['--direct', '--trace', '/nonexistent/file'], 'devices')
    check('a trace that cannot be written is told of', 'OUTBOARD_TRACE: cannot open /nonexistent/file (No such file or directory)' in said, said)
    here = os.path.join(folder, 'cwd')
    os.mkdir(here)
    before = os.getcwd()
    os.chdir(here)
    flagged = Server(server_path, '--driver', 'soft', listen=f'unix:{folder}/flagged', env={'OUTBOARD_TRACE': '1'})
    os.chdir(before)
    try:
        out, _ = run(['--server', flagged.url], 'answers')
        check('a traced server works', 'context 0' in out, out)
        check("a server's trace is in its log", flagged.line('trace:'), flagged.lines[-5:])
        check("a server's flag names no file", not os.listdir(here), os.listdir(here))
    finally:
        check('the traced server ends', flagged.stop())


def main():
    with tempfile.TemporaryDirectory() as folder:
        server = Server(server_path, '--driver', 'soft', listen=f'unix:{folder}/socket', env={'OUTBOARD_SOFT_DEVICES': str(DEVICES), 'OUTBOARD_SOFT_UUID': UUID[0]})
        remote = ['--server', server.url]
        try:
            visible(remote)
            exported(remote)
            execution(remote)
            answers(remote)
            server_side(remote, folder)
        finally:
            check('the server ends', server.stop())
        traces(folder)
    sys.exit(1 if bad else 0)


main()
