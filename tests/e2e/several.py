# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""One program that uses the devices of two servers, over a Unix socket, tcp and shared memory:
the list of devices, copies between the servers, order, threads, what is refused, a server that
ends, the report of --stats, and wrong lists.

    several.py OUTBOARD SERVER PROGRAM [PROGRAMS]

PROGRAMS: a folder with programs that use several devices.
"""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
import cutter
import waiting
from listening import Nobody
from outboard_test import ENV, Server, check, finish, needs, run

OUTBOARD, SERVER, PROGRAM, *PROGRAMS = sys.argv[1:5]
needs('resume')
TWO = {'OUTBOARD_SOFT_DEVICES': '2'}


def server(listen='tcp://127.0.0.1:0'):
    return Server(SERVER, '--driver', 'soft', listen=listen, env=TWO)


def several(url, mode, **env):
    return run(OUTBOARD, url, PROGRAM, mode, env=env, timeout=waiting.LONG)


def right(url, mode, **env):
    out, done = several(url, mode, **env)
    check(f'{mode}, {re.sub("[:/][^+,]*", "", url)}', done.returncode == 0 and out.endswith(f'{mode}: 0 wrong\n'), out + done.stderr)
    return out, done.stderr


def devices(url, **env):
    """Returns (PCI address, UUID, whether it has access to each device) of each device."""
    out, done = several(url, 'list', **env)
    check('the list is right', done.returncode == 0, out + done.stderr)
    return [tuple(line.split(maxsplit=3)[1:]) for line in out.splitlines()[:-1]]


def lists(a, b):
    joined = devices(f'{a.url}+{b.url}')
    check('the devices of the first server, then those of the second', len(joined) == 4, joined)
    check('their PCI addresses differ', len({pci for pci, *_ in joined}) == 4, joined)
    check('their UUIDs differ', len({uuid for _, uuid, _ in joined}) == 4, joined)
    check('a device has access to those of its own server', [access for *_, access in joined] == ['0 1 0 0', '1 0 0 0', '0 0 0 1', '0 0 1 0'], joined)
    alone = devices(a.url)
    check('the first server\'s devices are what they are alone', [d[:2] for d in joined[:2]] == [d[:2] for d in alone], (joined, alone))
    check('CUDA_VISIBLE_DEVICES counts in the whole list', [d[:2] for d in devices(f'{a.url}+{b.url}', CUDA_VISIBLE_DEVICES='3,1')] ==
          [joined[3][:2], joined[1][:2]])
    hexed = joined[2][1]
    uuid = 'GPU-' + '-'.join((hexed[:8], hexed[8:12], hexed[12:16], hexed[16:20], hexed[20:]))
    check('also by UUID', [d[:2] for d in devices(f'{a.url}+{b.url}', CUDA_VISIBLE_DEVICES=uuid)] == [joined[2][:2]])
    check('CUDA_DEVICE_ORDER sorts the whole list', [d[0] for d in devices(f'{a.url}+{b.url}', CUDA_DEVICE_ORDER='PCI_BUS_ID')] == sorted(d[0] for d in joined))
    check('a comma names alternatives', len(devices(f'{Nobody().url},{a.url}+{b.url}')) == 4)


def alike():
    """Two servers of one machine may offer the same device."""
    alike = {**TWO, 'OUTBOARD_SOFT_UUID': 'GPU-0012abff-0102-0304-0506-0708090a0b0c'}
    with Server(SERVER, '--driver', 'soft', env=alike) as a, Server(SERVER, '--driver', 'soft', env=alike) as b:
        check('the variable names the devices', [uuid for _, uuid, _ in devices(a.url)] == ['0012abff0102030405060708090a0b0c', '0013abff0102030405060708090a0b0c'], devices(a.url))
        check('devices with the same UUID are listed with different ones', len({uuid for _, uuid, _ in devices(f'{a.url}+{b.url}')}) == 4)
    wrong = Server(SERVER, '--driver', 'soft', env={'OUTBOARD_SOFT_UUID': 'GPU-12'}, must_start=False)
    check('a wrong UUID', wrong.url is None and wrong.said('OUTBOARD_SOFT_UUID=GPU-12 is not a UUID such as GPU-'), wrong.lines)


def refused(what, url, *reasons):
    out, done = several(url, 'list')
    check(f'{what} is refused', done.returncode, out)
    check('with one line that says why', done.stderr.count('\n') == 1 and all(reason in done.stderr for reason in reasons), done.stderr)


def wrong_lists(a, b):
    refused('a server twice', f'{a.url}+{a.url}', 'named twice')
    refused('a server chosen twice', f'{a.url},{Nobody().url}+{a.url}', 'chosen twice', a.url)
    gone = Nobody().url
    refused('a server that is not there', f'{a.url}+{gone}', gone)
    refused('a ninth server', '+'.join([a.url] + [f'tcp://127.0.0.1:{n}' for n in range(1, 9)]), 'more than 8 servers')
    refused('a wrong address', f'{a.url}+tcp://127.0.0.1:none', 'port')
    with contextlib.ExitStack() as stack:
        many = [stack.enter_context(Server(SERVER, '--driver', 'soft', env={'OUTBOARD_SOFT_DEVICES': '8'})).url for _ in range(8)]
        check('8 servers with 64 devices are one list', len(devices('+'.join(many))) == 64)


def stats(a, b):
    _, err = right(f'{a.url}+{b.url}', 'order', OUTBOARD_STATS='1')
    check('the report names each server', f'server {a.url}\n' in err and f'server {b.url}\n' in err, err)
    parts = [int(n) for n in re.findall(r'^outboard: (\d+) calls sent', err, re.M)]
    whole = re.search(r'2 servers together: (\d+) calls sent', err)
    check('and has the sums', len(parts) == 2 and whole and int(whole[1]) == sum(parts), err)


def lost(a):
    """The second server is killed while the program uses both."""
    with server() as b:
        program = subprocess.Popen([OUTBOARD, 'run', '--server', f'{a.url}+{b.url}', '--', PROGRAM, 'lost'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=dict(ENV, OUTBOARD_GRACE='0'))
        check('the program uses both', program.stdout.readline() == 'ready\n')
        workers = waiting.until(b.workers)
        b.process.kill()
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        program.stdin.write('\n')
        program.stdin.flush()
        check('calls on the other server succeed', program.stdout.readline() == 'gone\n')
        out, err = program.communicate('\n', timeout=waiting.LONG)
        check('and those on the lost one fail', program.returncode == 0 and out == 'lost: 0 wrong\n', out + err)
        check('one line names the server', f'the session with {b.url} is lost' in err, err)


def tool(*arguments):
    return subprocess.run([OUTBOARD, *arguments], capture_output=True, text=True, timeout=waiting.LONG, env=ENV)


def tools(a, b):
    done = tool('check', '--server', f'{a.url}+{b.url}')
    check('check shows both', done.returncode == 0 and done.stdout.endswith('together  2 servers, 4 devices\n') and done.stdout.count('1 of 1 answer') == 2, done.stdout)
    done = tool('check', '--server', f'{a.url}+{Nobody().url}')
    check('one that does not answer is an error', done.returncode == 1 and 'a program would get none' in done.stdout, done.stdout)
    done = tool('info', '--server', f'{Nobody().url},{a.url}+{b.url}')
    check('info counts the devices through', re.findall(r'^ +\[(\d)\]', done.stdout, re.M) == ['0', '1', '2', '3'], done.stdout)
    done = tool('top', '--once', '--server', f'{a.url}+{b.url}')
    check('top wants one', done.returncode == 2 and 'name one of them' in done.stderr, done.stderr)


NVML = """
import ctypes, sys
n = ctypes.CDLL('libnvidia-ml.so.1')
count, device, text, status = ctypes.c_uint(), ctypes.c_void_p(), ctypes.create_string_buffer(96), ctypes.c_int()
assert n.nvmlInit_v2() == 0 and n.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
handles = []
for i in range(count.value):
    assert n.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(device)) == 0 and n.nvmlDeviceGetUUID(device, text, 96) == 0
    handles.append(ctypes.c_void_p(device.value))
    print(text.value.decode())
for other in handles[1:]:
    assert n.nvmlDeviceGetP2PStatus(handles[0], other, 0, ctypes.byref(status)) == 0
    print(status.value)
"""


def nvml(a, b):
    url = f'{a.url}+{b.url}'
    cuda = [('GPU-' + '-'.join((u[:8], u[8:12], u[12:16], u[16:20], u[20:])), '0000' + pci.upper()) for pci, u, _ in devices(url, CUDA_DEVICE_ORDER='PCI_BUS_ID')]
    done = tool('smi', '--query-gpu', 'uuid,pci.bus_id,server', '--format', 'csv,noheader', '--server', url)
    rows = [tuple(line.split(', ')) for line in done.stdout.splitlines()]
    check('smi shows the devices as CUDA does', [row[:2] for row in rows] == cuda, (rows, cuda))
    check('and whose they are', [row[2] for row in rows] == [a.url, a.url, b.url, b.url], rows)
    out, done = run(OUTBOARD, url, sys.executable, '-c', NVML)
    check('NVML has the same list', out.split()[:4] == [uuid for uuid, _ in cuda], out + done.stderr)
    check('and access to the own server\'s device alone', [s == '0' for s in out.split()[4:]] == [True, False, False], out + done.stderr)
    done = tool('smi', '--server', f'{a.url}+{Nobody().url}')
    check('smi names the server that does not answer', done.returncode == 1 and a.url not in done.stderr and 'cannot reach' in done.stderr, done.stderr)


def cut(a, b):
    """The connections to one of the servers break again and again."""
    for first, second, broken in ((a, b, 1), (b, a, 0)):
        proxy = cutter.Proxy('tcp:', (first, second)[broken].url, 12, 400 << 10, 0, True, 3)
        urls = [first.url, second.url]
        urls[broken] = proxy.url
        right('+'.join(urls), 'copies')
        made = proxy.total()
        proxy.close()
        check(f'through {made} breaks', made >= 4)


def tls():
    """Two servers with certificates of their own, and one token."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        token = tool('token', 'create', '--file', f'{folder}/tokens', '--name', 'tests').stdout.strip()
        pins, urls = [], []
        for name in 'first', 'second':
            files = f'{folder}/{name}.pem', f'{folder}/{name}.key'
            pins.append(tool('cert', '--cert', files[0], '--key', files[1]).stdout.strip())
            urls.append(stack.enter_context(Server(SERVER, '--driver', 'soft', '--tls-cert', files[0], '--tls-key', files[1], '--tokens', f'{folder}/tokens',
                                                   listen='tls://127.0.0.1:0')).url)
        right('+'.join(urls), 'order', OUTBOARD_TLS_PIN=','.join(pins), OUTBOARD_TOKEN=token)
        for pin in pins[0], f'{pins[0]},{pins[0]}':
            out, done = several('+'.join(urls), 'list', OUTBOARD_TLS_PIN=pin, OUTBOARD_TOKEN=token)
            check('a certificate that is not pinned is refused', done.returncode and urls[1] in done.stderr, out + done.stderr)
        out, done = several('+'.join(urls), 'list', OUTBOARD_TLS_PIN=pins[0] + ',', OUTBOARD_TOKEN=token)
        check('a wrong pin is refused', done.returncode and 'OUTBOARD_TLS_PIN' in done.stderr, out + done.stderr)


def timeline(a, b):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, 'timeline')
        trace = pathlib.Path(folder, 'trace')
        right(f'{a.url}+{b.url}', 'refused', OUTBOARD_TIMELINE=str(path), OUTBOARD_TRACE=str(trace))
        files = sorted(file.name for file in pathlib.Path(folder).iterdir())
        check('a timeline for each server', files == ['timeline', 'timeline.2', 'trace'], files)
        check('the trace names the servers', set(re.findall(r' server (\d) ', trace.read_text())) == {'1', '2'}, trace.read_text()[:500])


def same_everywhere():
    """The UUIDs of software devices are made of the machine's id, which a sandbox does not let workers read."""
    with server() as closed, Server(SERVER, '--driver', 'soft', '--sandbox', 'off', env=TWO) as opened:
        found = [[uuid for _, uuid, _ in devices(s.url)] for s in (closed, opened)]
    done = subprocess.run([OUTBOARD, 'run', '--direct', '--', PROGRAM, 'list'], capture_output=True, text=True, timeout=waiting.LONG, env={**ENV, **TWO})
    found.append([line.split(maxsplit=3)[2] for line in done.stdout.splitlines()[:-1]])
    check('a device has one UUID with a sandbox, without one, and without a server', len(found[0]) == 2 and found[0] == found[1] == found[2], (found, done.stderr))


def main():
    alike()
    same_everywhere()
    with tempfile.TemporaryDirectory() as folder, server() as a, server() as b, server(f'unix:{folder}/u') as c, server(f'shm:{folder}/s') as d:
        lists(a, b)
        for mode in 'copies', 'order', 'threads', 'refused':
            for url in f'{a.url}+{b.url}', f'{c.url}+{a.url}+{d.url}':
                err = right(url, mode)[1]
        check('what is refused is said once', err.count('memory of another server') == err.count('NCCL: a collective') == err.count('two servers meet is not') == 1, err)
        check('an address of another server in a kernel, too', err.count(f'kernel idle on a device of {c.url} gets an address of {d.url}') == 1, err)
        stats(a, b)
        timeline(a, b)
        cut(a, b)
        tls()
        tools(a, b)
        nvml(a, b)
        wrong_lists(a, b)
        lost(a)
        for program in PROGRAMS:
            out, done = run(OUTBOARD, f'{a.url}+{b.url}', f'{program}/peers', timeout=waiting.LONG)
            check('peers of four devices of two servers', done.returncode == 0 and '4 devices' in out and '4 pairs with access' in out, out + done.stderr)
            out, done = run(OUTBOARD, f'{a.url}+{b.url}', f'{program}/every_device', timeout=waiting.LONG)
            check('every device', done.returncode == 0 and out.endswith('every_device: ok\n'), out + done.stderr)
    finish()


main()
