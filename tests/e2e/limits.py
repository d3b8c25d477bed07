# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Limits of a session, tested with real programs: the program sees the limits, freed resources are
available again, other sessions are not affected.

    limits.py OUTBOARD SERVER LIMITS_PROGRAM caps|shares

caps may run in parallel with other tests; shares compares the processor time of sessions.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
import waiting
from outboard_test import ENV, Server, check, finish, run

OUTBOARD, SERVER, PROGRAM, PART = sys.argv[1:5]
MIB = 1 << 20


def numbers(text):
    return [int(n) for n in re.findall(r'\d+', text)]


def memory(cap_mib):
    with Server(SERVER, '--driver', 'soft', '--max-memory', f'{cap_mib}MiB') as s:
        total, info, free = numbers(run(OUTBOARD, s.url, PROGRAM, 'info')[0])
        check('the device seems to have the cap', total == info == cap_mib * MIB and cap_mib * MIB * 0.9 < free <= cap_mib * MIB, (total, info, free))
        for how in ('plain', 'pitch', 'async'):
            out, done = run(OUTBOARD, s.url, PROGRAM, 'memory', how)
            got = [numbers(line) for line in out.splitlines() if line.startswith('got')]
            free = [numbers(line)[2] for line in out.splitlines() if line.startswith('total')]
            check(f'{how}: as much as the cap, then out of memory, twice', len(got) == 2 and got[0] == got[1] and got[0][1] == 2 and
                  0.9 * cap_mib * MIB <= got[0][0] <= cap_mib * MIB, out + done.stderr)
            check(f'{how}: little is said to be free when nothing is to be had', len(free) == 2 and max(free) < 12 * MIB, free)
        out, done = run(OUTBOARD, s.url, PROGRAM, 'heap', str(cap_mib * 2))
        check('a heap for device code above the cap is refused', out == 'heap 2\n', out)
        out, done = run(OUTBOARD, s.url, PROGRAM, 'info', env={'OUTBOARD_VRAM': '64MiB'})
        check('a client may ask for less', numbers(out)[:2] == [64 * MIB, 64 * MIB], out)
        out, done = run(OUTBOARD, s.url, PROGRAM, 'info', env={'OUTBOARD_VRAM': '64GiB'})
        check('and not for more', numbers(out)[:2] == [cap_mib * MIB] * 2, out)
    # Without virtual memory management: with slabs, and, as with a checked device, one call of the
    # driver for each allocation.
    for what, env in (('slabs', {'OUTBOARD_FAULT': 'cuMemAddressReserve:*=801'}), ('single allocations', {'OUTBOARD_SOFT_MEMCHECK': '1'})):
        with Server(SERVER, '--driver', 'soft', '--max-memory', f'{cap_mib}MiB', env=env) as s:
            total, info, free = numbers(run(OUTBOARD, s.url, PROGRAM, 'info')[0])
            check(f'{what}: the device seems to have the cap', total == info == cap_mib * MIB and cap_mib * MIB * 0.9 < free <= cap_mib * MIB, (total, info, free))
            for how in ('plain', 'pitch', 'async'):
                out, done = run(OUTBOARD, s.url, PROGRAM, 'memory', how)
                got = [numbers(line) for line in out.splitlines() if line.startswith('got')]
                check(f'{what}, {how}: the cap holds on a driver without virtual memory management', len(got) == 2 and got[0] == got[1] and
                      0.9 * cap_mib * MIB <= got[0][0] <= cap_mib * MIB, out + done.stderr)


def tokens():
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, 'tokens')

        def token(*limits):
            return subprocess.run([OUTBOARD, 'token', 'create', '--file', file, '--name', 'x', *limits], capture_output=True, text=True, env=ENV)
        made = {name: token(*limits).stdout.strip() for name, limits in
                {'small': ['--max-memory', '64MiB', '--max-modules', '3', '--max-lanes', '2'], 'large': ['--max-memory', '1GiB'], 'none': []}.items()}
        done = token('--max-lanes', '5000')
        check('a limit that makes no sense is refused', done.returncode != 0 and 'from 1 to 1024' in done.stderr, done.stderr)
        listed = subprocess.run([OUTBOARD, 'token', 'list', '--file', file], capture_output=True, text=True, env=ENV).stdout
        check('the limits of a token are listed', f'max-memory={64 * MIB},max-modules=3,max-lanes=2' in listed, listed)
        with Server(SERVER, '--driver', 'soft', '--max-memory', '256MiB', '--tokens', file) as s:
            for name, cap in (('small', 64), ('large', 256), ('none', 256)):
                out, done = run(OUTBOARD, s.url, PROGRAM, 'info', env={'OUTBOARD_TOKEN': made[name]})
                check(f'{name}: the lower of the two caps counts', numbers(out)[:2] == [cap * MIB] * 2, out + done.stderr)
            out, _ = run(OUTBOARD, s.url, PROGRAM, 'modules', '50', env={'OUTBOARD_TOKEN': made['small']})
            check('the modules of a token', numbers(out) == [4, 2], out)
            out, done = run(OUTBOARD, s.url, PROGRAM, 'threads', '4', env={'OUTBOARD_TOKEN': made['small']})
            check('the threads of a token', numbers(out) == [2, 2, 0], out + done.stderr)


def things():
    with Server(SERVER, '--driver', 'soft', '--max-handles', '40', '--max-modules', '5', '--max-lanes', '4') as s:
        out, _ = run(OUTBOARD, s.url, PROGRAM, 'handles', '200')
        check('handles: the cap, then out of memory', 40 <= numbers(out)[0] <= 48 and numbers(out)[1] == 2, out)
        out, _ = run(OUTBOARD, s.url, PROGRAM, 'handles', '36')
        check('handles: below the cap all is well', numbers(out) == [36, 0], out)
        out, _ = run(OUTBOARD, s.url, PROGRAM, 'modules', '50')
        check('modules: the cap, then out of memory', numbers(out) == [6, 2], out)
        out, _ = run(OUTBOARD, s.url, PROGRAM, 'threads', '3')
        check('threads: below the cap all is well', numbers(out) == [3, 0, 0], out)
        out, done = run(OUTBOARD, s.url, PROGRAM, 'threads', '8')
        check('threads: above it the calls of further ones are refused, and the log says why', numbers(out) == [4, 4, 0] and done.returncode == 0 and
              waiting.until(lambda: s.said('--max-lanes')), out + done.stderr)


def host_memory():
    with Server(SERVER, '--driver', 'soft', '--max-host-memory', '128MiB', '--warm', '2') as s:
        other = subprocess.Popen([OUTBOARD, 'run', '--server', s.url, '--', PROGRAM, 'spin', '2'], stdout=subprocess.PIPE, text=True, env=ENV)
        out, done = run(OUTBOARD, s.url, PROGRAM, 'code', '2000')
        got = numbers(out)
        check('code: as much as the budget holds, then out of memory, and the session goes on', len(got) == 3 and 5 < got[0] < 150 and got[1:] == [2, 0], out + done.stderr)
        check('code: another session notices nothing', other.communicate(timeout=60)[0].startswith('launches') and other.returncode == 0)
        out, done = run(OUTBOARD, s.url, PROGRAM, 'code', '5')
        check('code: the next session has a budget of its own', numbers(out) == [5, 0, 0], out + done.stderr)


def idle():
    with Server(SERVER, '--driver', 'soft', '--idle-timeout', '10') as s:
        out, done = run(OUTBOARD, s.url, PROGRAM, 'idle', '0.3')
        check('a short rest is no idleness', out == 'after 0\n', out)
        out, done = run(OUTBOARD, s.url, PROGRAM, 'idle', '20')
        check('an idle session is ended and told why', out == 'after 46\n' and '--idle-timeout' in done.stderr, out + done.stderr)
        out, _ = run(OUTBOARD, s.url, PROGRAM, 'spin', '12')
        check('a busy one is not', out.startswith('launches'), out)


def conduct():
    for reaction, words in (('warn', 'warned'), ('limit', 'limited')):
        with Server(SERVER, '--driver', 'soft', '--max-memory', '64MiB', '--on-excess', reaction) as s:
            n = 1500
            out, done = run(OUTBOARD, s.url, PROGRAM, 'refusals', '200')
            check(f'{reaction}: some refusals cost nothing', numbers(out)[:2] == [200, 2], out + done.stderr)
            out, done = run(OUTBOARD, s.url, PROGRAM, 'refusals', str(n))
            check(f'{reaction}: many are answered all the same', numbers(out)[:2] == [n, 2], out + done.stderr)
            check(f'{reaction}: the log says so', waiting.until(lambda: s.said(words)), s.lines[-5:])
    with Server(SERVER, '--driver', 'soft', '--max-memory', '64MiB', '--on-excess', 'terminate', '--warm', '2') as s:
        stubborn = subprocess.Popen([OUTBOARD, 'run', '--server', s.url, '--', PROGRAM, 'refusals', '20000'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV)
        waiting.until(lambda: s.said('suspended') or stubborn.poll() is not None)
        out, _ = run(OUTBOARD, s.url, PROGRAM, 'memory', 'plain')
        check('terminate: another session notices nothing', out.count('result 2') == 2, out)
        out, err = stubborn.communicate(timeout=waiting.LONG)
        check('terminate: suspended, then ended, and told why', s.said('suspended') and 'suspensions did not help' in err and numbers(out)[1] == 46, out + err)


def look(server):
    return json.loads(subprocess.run([OUTBOARD, 'top', '--once', '--json', '--server', server.url], capture_output=True, text=True, env=ENV).stdout)


def hidden():
    """The first device gets a grant only if the program may see it."""
    with tempfile.TemporaryDirectory() as folder:
        for number, (visible, used) in enumerate(((None, (True, False)), ('0', (True, False)), ('1', (False, True)), ('1,0', (False, True)))):
            go = os.path.join(folder, f'go{number}')
            with Server(SERVER, '--driver', 'soft', '--sandbox', 'off', env={'OUTBOARD_SOFT_DEVICES': '2', 'OUTBOARD_FAULT': f'cuStreamSynchronize:1=hold@{go}'}) as s:
                env = dict(ENV, **({'CUDA_VISIBLE_DEVICES': visible} if visible else {}))
                program = subprocess.Popen([OUTBOARD, 'run', '--server', s.url, '--', PROGRAM, 'fill'], env=env)
                waiting.until(lambda: s.said('call 1 of cuStreamSynchronize is held') or program.poll() is not None)
                told = look(s)
                check(f'CUDA_VISIBLE_DEVICES={visible}: memory is taken on the device that is used alone',
                      tuple(d['used_bytes'] > 0 for d in told['devices']) == used, told['devices'])
                open(go, 'w').close()
                check(f'CUDA_VISIBLE_DEVICES={visible}: the program ends', program.wait(timeout=waiting.LONG) == 0)


def share():
    with Server(SERVER, '--driver', 'soft', '--warm', '2') as s:
        def start(part):
            return subprocess.Popen([OUTBOARD, 'run', '--server', s.url, '--share', part, '--', PROGRAM, 'spin', '8'], stdout=subprocess.PIPE, text=True, env=ENV)
        procs = [start('0.25'), start('0.75')]
        # Long enough for the session with the smaller share to reach its limit, if the machine is
        # fast enough.
        told = {'listed': []}

        def long_enough():
            now = look(s)
            if len(now['listed']) == 2:
                told.update(now)
            return any(p.poll() is not None for p in procs) or len(now['listed']) == 2 and \
                all(one['age_seconds'] > 3 and (one['share'] > 0.3 or one['throttled_seconds'] > 0.2) for one in now['listed'])

        waiting.until(long_enough, every=0.2)
        launches = [int(re.search(r'launches (\d+)', p.communicate(timeout=waiting.LONG)[0]).group(1)) for p in procs]
        used = {round(x['share'], 2): x['device_seconds'] / x['age_seconds'] for x in told['listed']}
        print('    launches', launches, 'parts of the device', used)
        check('top shows both sessions with their share', set(used) == {0.25, 0.75}, told)
        # The guarantee is that no session gets more than its share; on a busy machine it may get
        # less.
        check('neither gets more than its share', all(have < want * 1.10 + 0.03 for want, have in used.items()), used)
        if used.get(0.25, 0) > 0.2:
            check('it was held back', all(x['throttled_seconds'] > 0.2 for x in told['listed'] if x['share'] < 0.3), told)


def priority():
    with Server(SERVER, '--driver', 'soft', '--warm', '2', '--max-priority', 'high') as s:
        def start(which):
            return subprocess.Popen([OUTBOARD, 'run', '--server', s.url, '--priority', which, '--', PROGRAM, 'spin', '5'], stdout=subprocess.PIPE, text=True, env=ENV)
        procs = [start('low'), start('high')]
        waiting.until(lambda: any(p.poll() is not None for p in procs) or
                      any(x['priority'] == 0 and x['throttled_seconds'] > 0 for x in look(s)['listed']) and len(look(s)['listed']) == 2, every=0.2)
        told = look(s)
        low, high = [int(re.search(r'launches (\d+)', p.communicate(timeout=waiting.LONG)[0]).group(1)) for p in procs]
        print('    launches: low priority', low, 'high', high)
        check('the low one does not starve', low > 0, (low, high))
        check('the low one waited', any(x['throttled_seconds'] > 0 for x in told['listed'] if x['priority'] == 0), told)


# seconds: OBS_YIELD_MAX_MS in server/layers/quota.h, the delay of each launch while a session of
# higher priority is active
YIELD = 0.1


def order():
    """A call of the high-priority session is blocked in the driver. Meanwhile each launch of the
    low one is delayed by the maximum; afterwards none is."""
    with tempfile.TemporaryDirectory() as folder:
        go, lines = os.path.join(folder, 'go'), os.path.join(folder, 'lines')
        with Server(SERVER, '--driver', 'soft', '--sandbox', 'off', '--max-priority', 'high', env={'OUTBOARD_FAULT': f'cuStreamSynchronize:1=hold@{go}'}) as s, open(lines, 'w') as file:
            def start(which, out, *what):
                return subprocess.Popen([OUTBOARD, 'run', '--server', s.url, '--priority', which, '--', PROGRAM, *what], stdout=out, env=ENV)

            def launched():
                with open(lines) as f:
                    return f.read().count('launched')

            def held_back():
                return sum(x['throttled_seconds'] for x in look(s)['listed'] if x['priority'] == 0)

            def span(n):
                """Returns how long n launches of the low session were delayed, less the possible
                delay of the one before."""
                before, first = held_back(), launched()
                waiting.until(lambda: launched() >= first + n)
                return held_back() - before
            low = start('low', file, 'launches', '10000000')
            waiting.until(lambda: launched() >= 20)
            high = start('high', subprocess.DEVNULL, 'fill')
            waiting.until(lambda: s.said('call 1 of cuStreamSynchronize is held'))
            check('while the high one works the low one is held back', waiting.until(lambda: held_back() > YIELD))
            waited = span(6)
            check('every launch of the low one waits as long as it may', waited >= 5 * YIELD, waited)
            open(go, 'w').close()
            check('the high one ends', high.wait(timeout=waiting.LONG) == 0)
            check('then none waits', waiting.until(lambda: span(20) < 10 * YIELD))
            low.terminate()
            low.wait(timeout=waiting.LONG)


if PART == 'caps':
    memory(256)
    things()
    host_memory()
    tokens()
    idle()
    conduct()
    hidden()
else:
    share()
    priority()
    order()
finish()
