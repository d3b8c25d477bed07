# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""NVML for clients: libnvidia-ml.so.1 and `outboard smi`. A program (nvml.c) calls every function
that the library answers, forwarded and direct, and must print the same; processes and memory
limits are shown; a server's sensors arrive, also when their library hangs or crashes; with a dead,
stopped or lying server every call ends in time with an error.

    nvml.py OUTBOARD SERVER NVML_PROGRAM SENSORS_LIBRARY NVML_API
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(sys.path[0] + '/../lib')
import waiting
from listening import Listener, Nobody
from outboard_test import ENV, Server, check, finish, run

OUTBOARD, SERVER, PROGRAM, SENSORS, API = sys.argv[1:6]
ENV['OUTBOARD_SOFT_MEMORY'] = '4G'  # whatever this machine has
ENV['OUTBOARD_SOFT_UUID'] = 'GPU-30302d6f-7574-626f-6172-642d736f6674'  # as nvml_sensors.c says
OK, UNINITIALIZED, NOT_SUPPORTED, DRIVER_NOT_LOADED, TIMEOUT, LOST, MISMATCH = 0, 1, 3, 9, 10, 15, 18


def direct(*command):
    return subprocess.run([OUTBOARD, 'run', '--direct', '--', *command], capture_output=True, text=True, timeout=60, env=ENV)


def smi(url, *arguments, env=None):
    return subprocess.run([OUTBOARD, 'smi', '--server', url, *arguments], capture_output=True, text=True, timeout=60, env={**ENV, **(env or {})})


def answered():
    """The names that the library answers, as its table says."""
    text = pathlib.Path(API).read_text()
    return {name for line in text.split('\n') if re.match(r'(call|fact|fact64|hand) ', line) for name in re.findall(r'\bnvml[A-Z]\w+', line)[:1]}


def all_calls(folder):
    with Server(SERVER, '--driver', 'soft', listen=f'unix:{folder}/s') as server:
        out, done = run(OUTBOARD, server.url, PROGRAM)
        check('the program runs forwarded', done.returncode == 0 and not done.stderr, out + done.stderr)
    with Server(SERVER, '--driver', 'soft') as server:
        over_tcp, done = run(OUTBOARD, server.url, PROGRAM)
        check('over TCP it is the same', over_tcp == out, over_tcp)
    beside = direct(PROGRAM)
    check('and direct', beside.returncode == 0 and not beside.stderr, beside.stdout + beside.stderr)
    different = [pair for pair in zip(out.split('\n'), beside.stdout.split('\n')) if pair[0] != pair[1]]
    check('it prints the same', not different and len(out) == len(beside.stdout), different[:5])
    check('every answered function is called', answered() <= set(re.findall(r'^nvml\w+', out, re.M)), answered() - set(re.findall(r'^nvml\w+', out, re.M)))
    lines = set(out.split('\n'))
    for line in ("nvmlDeviceGetName text 0 'Outboard software device (CPU)' 7 2", 'nvmlDeviceGetCount_v2 before 1', 'nvmlDeviceSetPersistenceMode before 1',
                 'nvmlDeviceGetVbiosVersion before 1', 'nvmlInitWithFlags wrong 2', 'nvmlDeviceGetCount after two 0 1', 'nvmlShutdown after 1',
                 'nvmlDeviceGetHandleByIndex_v2 99 2', 'nvmlDeviceGetHandleByUUID none 6', 'nvmlDeviceGetHandleByUUID own 0 1', 'nvmlDeviceGetHandleByUUIDV version 25',
                 'nvmlDeviceGetHandleByPciBusId_v2 new 0 1', 'nvmlDeviceGetPciInfo out 0 0000:B0:00.0 55555555', 'nvmlDeviceGetPciInfo_v2 out 0 0000:B0:00.0 0',
                 'nvmlDeviceGetPciInfoExt version 25', 'nvmlDeviceGetMemoryInfo out 0 4294967296 1', 'nvmlDeviceGetMemoryInfo_v2 version 25',
                 'nvmlDeviceGetTemperature gpu 3', 'nvmlDeviceGetTemperature sensor 2', 'nvmlDeviceGetTemperatureV version 25', 'nvmlDeviceGetPowerUsage number 3 2 2',
                 'nvmlDeviceGetFieldValues three 0 3 3 3', 'nvmlDeviceGetComputeMode number 0 0 2 2', 'nvmlDeviceGetRunningProcessDetailList version 25',
                 'nvmlEventSetWait_v2 times out 10 1', 'nvmlEventSetFree again 2', 'nvmlDeviceRegisterEvents xid 3', 'nvmlDeviceGetVbiosVersion absent 3',
                 'nvmlDeviceSetPersistenceMode denied 4', 'nvmlDeviceGetIndex after 1', "nvmlErrorString 15 'GPU is lost'", "nvmlErrorString 77 'Unknown Error'",
                 'nvmlDeviceGetP2PStatus self 0 1', 'nvmlSystemGetProcessName own 0 named', 'nvmlSystemGetCudaDriverVersion out 0 13000'):
        check(line, line in lines, [near for near in lines if near.split(' ')[:2] == line.split(' ')[:2]])


def processes():
    with Server(SERVER, '--driver', 'soft') as server:
        holder = subprocess.Popen([OUTBOARD, 'run', '--server', server.url, '--', PROGRAM, 'hold', '64'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENV)
        out = ''.join(iter(holder.stdout.readline, 'holding\n'))
        check('a process sees itself, in every version', out.count('own 1') == 3 and 'compute 0 own' in out, out)
        listed = json.loads(smi(server.url, '--json').stdout)['devices'][0]
        check('another sees it, too', [p['pid'] for p in listed['processes']] == [holder.pid] and listed['processes'][0]['used_gpu_memory'] >= 64, listed)
        check('and its memory', listed['memory.used'] >= 64 and listed['memory.used'] + listed['memory.free'] == listed['memory.total'] == 4096, listed)
        table = smi(server.url).stdout
        check('the table names the process', re.search(rf'\| +0 +N/A +N/A +{holder.pid} +C +\S+ +\d+MiB \|', table), table)
        apps = smi(server.url, '--query-compute-apps=pid,used_memory', '--format=csv,noheader,nounits').stdout
        check('and so does CSV', re.fullmatch(rf'{holder.pid}, \d+\n', apps), apps)
        holder.communicate('\n')
        check('it has ended well', holder.returncode == 0, holder.returncode)
        check('then there is none', waiting.until(lambda: not json.loads(smi(server.url, '--json').stdout)['devices'][0]['processes']))
    beside = subprocess.run([OUTBOARD, 'run', '--direct', '--', PROGRAM, 'hold', '64'], input='\n', capture_output=True, text=True, timeout=60, env=ENV)
    check('direct, a process sees itself', beside.stdout.count('own 1') == 3 and beside.returncode == 0, beside.stdout + beside.stderr)


def limits():
    with Server(SERVER, '--driver', 'soft', '--max-memory', '1GiB') as server:
        check('the server\'s limit is the total', smi(server.url, '--query-gpu=memory.total', '--format=csv,noheader').stdout == '1024 MiB\n')
        half = {'OUTBOARD_VRAM': '512MiB'}
        check('the lower of two limits counts', smi(server.url, '--query-gpu=memory.total', '--format=csv,noheader', env=half).stdout == '512 MiB\n')
        done = subprocess.run([OUTBOARD, 'run', '--server', server.url, '--vram', '256MiB', '--', PROGRAM], capture_output=True, text=True, timeout=60, env=ENV)
        check('a program sees what it asks for', 'nvmlDeviceGetMemoryInfo out 0 268435456 1' in done.stdout, done.stdout)
        done = subprocess.run([OUTBOARD, 'run', '--server', server.url, '--vram', '256MiB', '--', PROGRAM, 'hold', '32'], input='\n', capture_output=True, text=True, timeout=60, env=ENV)
        check('and what its session has', 'nvmlDeviceGetMemoryInfo out 0 268435456 1' in done.stdout, done.stdout)


def prints():
    with Server(SERVER, '--driver', 'soft', '--warm', '0') as server:
        check('a server without warm workers knows its devices', smi(server.url, '-L').stdout.startswith('GPU 0: Outboard software device'))
    with Server(SERVER, '--driver', 'dryrun') as server:
        check('the use of a dry run', smi(server.url, '--query-gpu=name,utilization.gpu', '--format=csv,noheader').stdout.endswith('), 0 %\n'))
    with Server(SERVER, '--driver', 'soft') as server:
        smi(server.url)
        done = smi(server.url, env={'OUTBOARD_POLICY': 'least_load'})
        check('an unknown policy is named, as by the client library', done.returncode == 0 and "unknown policy 'least_load'; using least-load" in done.stderr, done.stderr)
        table = smi(server.url).stdout.rstrip('\n').split('\n')
        check('all lines of the table are equally wide', {len(line) for line in table[1:] if line} == {91}, '\n'.join(table))
        check('with many digits, too', {len(line) for line in smi(server.url, env={'OUTBOARD_VRAM': '1MiB'}).stdout.split('\n')[1:] if line} == {91})
        check('-L', smi(server.url, '-L').stdout == 'GPU 0: Outboard software device (CPU) (UUID: GPU-30302d6f-7574-626f-6172-642d736f6674)\n')
        out = smi(server.url, '--query-gpu=name, memory.total,temperature.gpu', '--format=csv').stdout
        check('CSV', out == 'name, memory.total [MiB], temperature.gpu\nOutboard software device (CPU), 4096 MiB, [N/A]\n', out)
        check('without units', smi(server.url, '--query-gpu=memory.total', '--format=csv,nounits').stdout == 'memory.total [MiB]\n4096\n')
        check('-q', re.search(r'\nGPU 00000000:B0:00\.0\n(    .*\n)*    memory\.total +: 4096 MiB\n', smi(server.url, '-q').stdout))
        done = smi(server.url, '--query-gpu=name,nonsense')
        check('a wrong field', done.returncode == 2 and 'Field "nonsense" is not a valid field' in done.stderr, done.stderr)
        done = smi(server.url, '--format=xml', '--query-gpu=name')
        check('a wrong format', done.returncode == 2 and '--format' in done.stderr, done.stderr)
        done = smi(server.url, '-i', '3')
        check('a GPU that is not there', done.returncode == 1 and 'no GPU 3' in done.stderr, done.stderr)
        looping = subprocess.Popen([OUTBOARD, 'smi', '--server', server.url, '--query-gpu=index', '--format=csv,noheader', '-l', '0.2'], stdout=subprocess.PIPE, text=True, env=ENV)
        check('-l', [looping.stdout.readline() for _ in range(3)] == ['0\n'] * 3)
        looping.terminate()
        looping.wait(waiting.LONG)


def sensors():
    with Server(SERVER, '--driver', 'soft', '--nvml', SENSORS) as server:
        def tells():
            return json.loads(smi(server.url, '--json').stdout)['devices'][0]
        check('a temperature arrives', waiting.until(lambda: tells()['temperature.gpu'] == 42), tells())
        now = tells()
        want = {'power.draw': 123.456, 'utilization.gpu': 37, 'utilization.memory': 11, 'ecc.mode.current': 'Enabled', 'ecc.mode.pending': 'Disabled',
                'memory.total': 8192, 'memory.reserved': 1024, 'memory.used': 2048, 'memory.free': 5120, 'pci.bus_id': '00000001:17:03.0',
                'driver_version': '555.42.06', 'pstate': None, 'fan.speed': None}
        check('and the rest', all(now[k] == v or (k == 'power.draw' and abs(now[k] - v) < 0.01) for k, v in want.items()), {k: now[k] for k in want})
        out, _ = run(OUTBOARD, server.url, PROGRAM)
        for line in ('nvmlDeviceGetTemperature gpu 0 42', 'nvmlDeviceGetPowerUsage number 0 123456 2 2', 'nvmlDeviceGetEccMode pair 0 1 0 2 2',
                     'nvmlDeviceGetTotalEnergyConsumption number 0 1099511627776 2 2', "nvmlSystemGetDriverVersion text 0 '555.42.06' 7 2",
                     'nvmlDeviceGetFieldValues three 0 0 3 0', 'nvmlDeviceGetMemoryInfo out 0 8589934592 1', 'nvmlDeviceGetPerformanceState number 3 2 2'):
            check(line, line in out.split('\n'), [near for near in out.split('\n') if near.split(' ')[0] == line.split(' ')[0]])
    for way in 'crash', 'hang':
        with Server(SERVER, '--driver', 'soft', '--nvml', SENSORS, env={'OUTBOARD_TEST_NVML': way}) as server:
            def heat():
                return smi(server.url, '--query-gpu=temperature.gpu', '--format=csv,noheader').stdout
            waiting.until(lambda: heat() == '42\n', waiting.AT_ONCE)
            check(f'a library that will {way}: the server answers, and without old values', waiting.until(lambda: heat() == '[N/A]\n'), heat())
            check('sessions are not affected', run(OUTBOARD, server.url, PROGRAM)[1].returncode == 0)
    with Server(SERVER, '--driver', 'soft', '--nvml', '/nowhere/libnvidia-ml.so.1') as server:
        check('no library: a line says so', server.line('no temperatures, power and clocks of the GPUs: .*nowhere'), server.lines)
        check('and the server runs', smi(server.url).returncode == 0)


def initialised(url, env=None):
    """The result of nvmlInit, the seconds it took, the messages."""
    out, done = run(OUTBOARD, url, PROGRAM, 'init', env=env or {})
    result, took = out.split()
    return int(result), float(took) / 1000, done.stderr


def bad_servers():
    nobody = Nobody()
    result, took, said = initialised(nobody.url)
    check('nobody there', result == DRIVER_NOT_LOADED and 'Connection refused' in said and took < 10, (result, took, said))
    silent = Listener(lambda c: c.recv(1 << 20) and c.recv(1))
    result, took, said = initialised('tcp:' + silent.address, {'OUTBOARD_TIMEOUT': '2'})
    check('a silent server', result == TIMEOUT and 1.5 < took < 20, (result, took, said))
    silent.close()
    for what, garbage in ('text', b'HTTP/1.1 400 Bad Request\r\n\r\n' + bytes(64)), ('zeros', bytes(4096)), ('random bytes', os.urandom(4096)):
        liar = Listener(lambda c, garbage=garbage: (c.recv(16), c.sendall(garbage)))
        result, took, said = initialised('tcp:' + liar.address)
        check(f'a server that answers {what}', result == MISMATCH and took < 10, (result, took, said))
        liar.close()
    result, took, said = initialised(f'{nobody.url},{nobody.url}')
    check('two that are not there', result == DRIVER_NOT_LOADED and took < 10, (result, took, said))
    done = smi(nobody.url)
    check('smi says so', done.returncode == 1 and 'Connection refused' in done.stderr and not done.stdout, done.stdout + done.stderr)


def lost_servers():
    for way, want in ('killed', LOST), ('stopped', TIMEOUT):
        server = Server(SERVER, '--driver', 'soft')
        program = subprocess.Popen([OUTBOARD, 'run', '--server', server.url, '--', PROGRAM, 'dynamic'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   env={**ENV, **({'OUTBOARD_TIMEOUT': '2'} if way == 'stopped' else {})})
        check('a call works', program.stdout.readline() == '0\n')
        stopped = [server.process.pid, *server.children()]
        for pid in stopped:
            os.kill(pid, signal.SIGKILL if way == 'killed' else signal.SIGSTOP)

        def again():
            program.stdin.write('\n')
            program.stdin.flush()
            result, took = program.stdout.readline().split()
            return int(result), float(took)

        seen = []
        waiting.until(lambda: seen.append(again()) or seen[-1][0] != OK)
        check(f'the server is {way}: an error in time', seen[-1][0] == want and seen[-1][1] < 10000, seen)
        at_once = again()
        check('the next call does not wait again', at_once[0] == want and at_once[1] < 500, at_once)
        if way == 'stopped':
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
            check('and when it goes on, calls work', waiting.until(lambda: again()[0] == OK))
        program.communicate()
        server.process.kill()
        server.process.wait(waiting.LONG)


def several():
    with Server(SERVER, '--driver', 'soft', '--max-memory', '1GiB') as small, Server(SERVER, '--driver', 'soft', '--max-memory', '2GiB') as large:
        waiting.until(lambda: smi(small.url, '-L').stdout and smi(large.url, '-L').stdout)
        both = f'{small.url},{large.url}'
        for mine, limit in (small, 1 << 30), (large, 2 << 30):
            # a session on the one server, then NVML in the same process with a list of both
            url = {'OUTBOARD_SERVER': mine.url}
            out = subprocess.run([OUTBOARD, 'run', '--server', mine.url, '--', 'sh', '-c', f'"{PROGRAM}" hold 32'], input='\n', capture_output=True, text=True, timeout=60, env={**ENV, **url}).stdout
            check('its session\'s server', f'nvmlDeviceGetMemoryInfo out 0 {limit} 1' in out, out)
        done = smi(both, '--query-gpu=server', '--format=csv,noheader')
        check('of two servers one is shown', done.stdout.strip() in (small.url, large.url), done.stdout + done.stderr)


def tools():
    """pynvml, where it is installed, reads the same."""
    code = ('from pynvml import *; nvmlInit(); h = nvmlDeviceGetHandleByIndex(0); print(nvmlDeviceGetName(h), nvmlDeviceGetMemoryInfo(h, version=nvmlMemory_v2).total, '
            'nvmlDeviceGetPciInfo(h).busId, nvmlDeviceGetComputeRunningProcesses(h), nvmlDeviceGetCudaComputeCapability(h))')
    if subprocess.run([sys.executable, '-c', 'import pynvml'], capture_output=True).returncode:
        print('pynvml (nvidia-ml-py) is not installed: its part is skipped')
        return
    with Server(SERVER, '--driver', 'soft') as server:
        out, done = run(OUTBOARD, server.url, sys.executable, '-c', code)
        check('pynvml', out == 'Outboard software device (CPU) 4294967296 00000000:B0:00.0 [] (13, 0)\n', out + done.stderr)


def peers():
    """Between two devices of the software device, and of one that CUDA has no peers of."""
    one = '0/1 0/1 0/1 0/1 0/1 2/99'
    other = '0/0 0/0 0/6 0/0 0/6 2/99'
    want = f'0 0: {one}\n0 1: {other}\n1 0: {other}\n1 1: {one}\n'
    two = {'OUTBOARD_SOFT_DEVICES': '2'}
    with Server(SERVER, '--driver', 'soft', env=two) as server:
        out, done = run(OUTBOARD, server.url, PROGRAM, 'peers')
        check('peer access, server', out == want, out + done.stderr)
    done = subprocess.run([OUTBOARD, 'run', '--direct', '--', PROGRAM, 'peers'], capture_output=True, text=True, timeout=60, env={**ENV, **two})
    check('peer access, direct', done.stdout == want, done.stdout + done.stderr)


with tempfile.TemporaryDirectory() as folder:
    all_calls(folder)
peers()
processes()
limits()
prints()
sensors()
bad_servers()
lost_servers()
several()
tools()
finish()
