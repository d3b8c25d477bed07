# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""outboard run --timeline: the file is valid JSON, the times of each track do not go back, each call
leads to its execution on the server, which lies within the call's own time, and what a small limit
dropped is counted. What the device worked on is there for each record, in a track for each stream.

    timeline.py OUTBOARD SERVER THREADS VECTOR_ADD FORK INIT TIMED_KERNELS KEEP_BUSY
"""
import collections
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
from outboard_test import ENV, Server, check, finish

OUTBOARD, SERVER, THREADS, VECTOR_ADD, FORK, INIT, TIMED, BUSY = map(os.path.abspath, sys.argv[1:9])
CALLS = 'wait', 'call'
# The operations that give work to the device.
WORKS = 'launch', 'memset', 'write', 'write_rows', 'write_kept', 'write_cached', 'copy_d2d', 'read', 'read_rows', 'read_later'
ROUNDED = 0.0025  # us: times in the file are whole ns, each rounded once


def run(url, path, *command, **env):
    return subprocess.run([OUTBOARD, 'run', '--server', url, '--timeline', path, '--stats', '--', *command], capture_output=True, text=True, timeout=120,
                          env={**ENV, **env}, check=False)


def slices(trace):
    return [e for e in trace['traceEvents'] if e['ph'] == 'X']


def read(path):
    with open(path, encoding='utf-8') as file:
        return json.load(file)


def sent(done):
    """The number of records, from the report of --stats."""
    return int(re.search(r'outboard: (\d+) calls sent', done.stderr).group(1))


def shape(trace):
    """What holds of every trace."""
    named = {(e['pid'], e['tid']) for e in trace['traceEvents'] if e['name'] == 'thread_name'}
    tracks = collections.defaultdict(list)
    for e in slices(trace):
        tracks[e['pid'], e['tid']].append(e)
        check_quietly('no negative length', e['dur'] >= 0, e)
    check('each track has a name', set(tracks) == named, set(tracks) ^ named)
    for track, events in tracks.items():
        back = [(a, b) for a, b in zip(events, events[1:]) if b['ts'] < a['ts']]
        check(f'the times of track {track} do not go back', not back, back[:1])
    other = {e['ph'] for e in trace['traceEvents']} - {'X', 'M', 's', 't', 'f'}
    check('slices have begin and end in one event', not other, other)
    flows = collections.defaultdict(str)
    for e in trace['traceEvents']:
        if e['ph'] in 'stf':
            flows[e['id']] += e['ph']
            check_quietly('an arrow is attached to a slice', any(s['ts'] <= e['ts'] <= s['ts'] + s['dur'] for s in tracks[e['pid'], e['tid']]
                                                                 if s['args'].get('number') == e['id']), e)
    wrong = {number: steps for number, steps in flows.items() if not re.fullmatch('st*f', steps)}
    check('each arrow has one begin and one end', not wrong, wrong)
    return flows


def check_quietly(what, condition, detail):
    if not condition:
        check(what, False, detail)


def whole(trace, done):
    """Nothing was dropped: every call is there, and every record was executed."""
    flows = shape(trace)
    about = trace['otherData']
    check('nothing was dropped', not any(about[key] for key in about if key.startswith('dropped')), about)
    error = about['clock error us']
    check('the error of the clocks is known', error is not None and error > 0 and about['clock exchanges'] > 0, about)
    calls = {e['args']['number']: e for e in slices(trace) if e.get('cat') in CALLS and e['args']['number']}
    executed = collections.defaultdict(list)
    for e in slices(trace):
        if e['cat'] == 'server':
            executed[e['args']['number']].append(e)
    begun = min(executed)  # the records before switched the times on
    missing = [e for number, e in calls.items() if number not in executed and number >= begun and e['name'] not in ('bye', 'timeline_read')]
    check('every call was executed', not missing, missing[:3])
    check('by the same name', all(e['name'] in (calls[n]['name'], 'answer') for n in executed if n in calls for e in executed[n]))
    waits = [e for number, e in calls.items() if e['cat'] == 'wait' and number in executed]
    outside = [(wait, executed[wait['args']['number']]) for wait in waits if not any(
        wait['ts'] - error <= e['ts'] and e['ts'] + e['args'].get('replied after us', 0) <= wait['ts'] + wait['dur'] + error for e in executed[wait['args']['number']])]
    check(f'{len(waits)} calls that waited were executed within their time', waits and not outside, outside[:1])
    unlinked = [e for e in waits if e['args']['number'] not in flows]
    check('and have arrows', not unlinked, unlinked[:1])
    early = [n for n, e in calls.items() if n in executed and min(x['ts'] for x in executed[n]) < e['ts'] - 2 * error]
    check('no call was executed before it was made', not early, early[:3])
    inserted = sum(x['name'] == 'ctx_use' for e in executed.values() for x in e)
    check('calls and changes of context are all records', len(calls) + inserted == sent(done), (len(calls), inserted, sent(done)))
    frames = [e for e in slices(trace) if e['name'] == 'frame' and e['args']['sent by'] and e['tid'] != 1025]
    check('the frames hold all records', sum(e['args']['records'] for e in frames) == sent(done), (sum(e['args']['records'] for e in frames), sent(done)))
    return calls, inserted


def tracks_of(trace):
    """The device's slices by track: the name of the stream."""
    names = {(e['pid'], e['tid']): e['args']['name'] for e in trace['traceEvents'] if e['name'] == 'thread_name'}
    tracks = collections.defaultdict(list)
    for e in slices(trace):
        if e['cat'] == 'device':
            tracks[names[e['pid'], e['tid']]].append(e)
    return tracks


def device(trace):
    """What the device did, of a program that waits for all of its work."""
    tracks, flows = tracks_of(trace), collections.defaultdict(list)
    executed = {e['args']['number']: e for e in slices(trace) if e['cat'] == 'server' and e['name'] != 'answer'}
    error = trace['otherData']['clock error us']
    for e in trace['traceEvents']:
        if e['ph'] in 'stf':
            flows[e['id']].append((e['pid'], e['tid'], e['ts']))
    worked = collections.Counter()
    for name, events in tracks.items():
        over = [(a, b) for a, b in zip(events, events[1:]) if b['ts'] < a['ts'] + a['dur'] - ROUNDED]
        check(f'{name}: the device works on one thing at a time', not over, over[:1])
        for e in events:
            worked[e['args']['number']] += e['args'].get('works', 1)
            begun = executed[e['args']['number']]
            # Both are times of the server's clock.
            check_quietly('the device works on what was executed', begun['name'] == e['name'] and e['ts'] >= begun['ts'] - 2 * error, (begun, e))
            check_quietly('an arrow leads to the work', (e['pid'], e['tid'], e['ts']) in flows[e['args']['number']], e)
    missing = [e for number, e in executed.items() if e['name'] in WORKS and number not in worked]
    check(f'{sum(worked.values())} works of {len(worked)} records in {len(tracks)} streams', worked and not missing, missing[:3])
    return tracks


def timed(url, path):
    """A program whose kernels say when they ran, by a clock of the same machine."""
    done = run(url, path, TIMED, 'times')
    check('timed_kernels succeeds', done.returncode == 0, done.stderr)
    trace = read(path)
    whole(trace, done)
    tracks = device(trace)
    check('each stream has a track', sorted(tracks) == ['device 0, default stream', 'device 0, stream 1', 'device 0, stream 2'], list(tracks))
    kernels = [tuple(map(int, line.split())) for line in done.stdout.splitlines() if re.fullmatch(r'\d \d+ \d+', line)]
    launches = sorted((e for events in tracks.values() for e in events if e['name'] == 'launch'), key=lambda e: e['args']['number'])
    check('each kernel has a slice', len(launches) == len(kernels) == 9, (len(launches), kernels))
    error = trace['otherData']['clock error us']
    short = [(k, e) for k, e in zip(kernels, launches) if e['dur'] < (k[2] - k[1]) / 1e3 * 0.999 - 2 * error]
    check('which is not shorter than the kernel ran', not short, short[:1])
    # The kernels' clock is the time of day, which may be adjusted by 0.05 % meanwhile. The trace counts from its own beginning: with one difference of clocks all kernels must lie within their slices.
    late = max(k[2] / 1e3 - (e['ts'] + e['dur']) for k, e in zip(kernels, launches))
    early = min(k[1] / 1e3 - e['ts'] for k, e in zip(kernels, launches))
    check('and each kernel ran within it', late <= early + 2 * error + 10000, (late, early, error))
    wall = int(re.search(r'^all (\d+)$', done.stdout, re.M).group(1)) / 1e3
    for name, events in tracks.items():
        busy = sum(e['dur'] for e in events if e['name'] == 'launch')
        check(f'{name}: was busy for {busy:.0f} of {wall:.0f} us', busy <= wall + 2 * error, (busy, wall))
    # The program slept for 60 ms before the last launch, when the device was idle: 20 ms are the kernel's.
    gap = launches[-1]['ts'] - max(e['ts'] + e['dur'] for e in launches[:-1])
    check('an idle device has no slice', gap >= 60000 - 2 * error - ROUNDED, gap)


def many_streams(url, path):
    """A program that creates and destroys stream after stream."""
    done = run(url, path, BUSY, '0.5')
    check('keep_busy succeeds', done.returncode == 0, done.stderr)
    trace = read(path)
    whole(trace, done)
    tracks = device(trace)
    check('a stream that is gone gives its track to the next', len(tracks) <= 3, list(tracks))


def small(url, path, inserted):
    """With a small limit the newest events are dropped and counted."""
    done = run(url, path, THREADS, OUTBOARD_TIMELINE_EVENTS='1024')
    check('the program succeeds with a small limit', done.returncode == 0, done.stderr)
    trace = read(path)
    shape(trace)
    about = trace['otherData']
    kept = [e for e in slices(trace) if e.get('cat') in CALLS and e['args']['number']]
    # The log inserts as many changes of context as in the run before.
    check('kept and dropped calls are all calls', len(kept) + about['dropped calls'] == sent(done) - inserted,
          (len(kept), about['dropped calls'], sent(done), inserted))
    check('some were dropped', about['dropped calls'] > 0, about)
    drawn = [e for e in slices(trace) if e['pid'] == min(x['pid'] for x in slices(trace)) and e['tid'] != 1025]
    check('the limit holds', len(drawn) <= about['limit of events'] == 1024, len(drawn))


def ends(url, path, folder):
    """How programs end, and files that cannot be written."""
    done = run(url, path, FORK)
    check('a program that forks succeeds', done.returncode == 0, done.stderr)
    # The server and the device have numbers above those of processes.
    pids = {e['pid'] for e in read(path)['traceEvents'] if e['pid'] < 1 << 22}
    check('the file is the parent\'s', len(pids) == 1, pids)

    os.remove(path)
    program = subprocess.Popen([OUTBOARD, 'run', '--server', url, '--timeline', path, '--', INIT, 'wait'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True, env=ENV)
    program.stdout.readline()
    program.send_signal(signal.SIGKILL)
    program.communicate(timeout=60)
    check('a killed program leaves an empty file', os.path.getsize(path) == 0)

    done = run(url, '/nonexistent/file', VECTOR_ADD)
    check('a file that cannot be created is an error', done.returncode == 1 and done.stdout == '' and
          'outboard run: --timeline: cannot create /nonexistent/file: No such file or directory' in done.stderr, done)
    done = subprocess.run([OUTBOARD, 'run', '--server', url, '--', VECTOR_ADD], capture_output=True, text=True, timeout=60,
                          env={**ENV, 'OUTBOARD_TIMELINE': '/nonexistent/file'}, check=False)
    check('without outboard run it is a warning', done.returncode == 0 and 'OUTBOARD_TIMELINE: cannot create /nonexistent/file' in done.stderr, done)
    done = subprocess.run([OUTBOARD, 'run', '--direct', '--timeline', path, '--', VECTOR_ADD], capture_output=True, text=True, timeout=60, check=False)
    check('--direct has no timeline', done.returncode == 2 and '--timeline shows client and server' in done.stderr, done)
    done = subprocess.run([OUTBOARD, 'run', '--server', url, '--timeline', 'relative.json', '--', VECTOR_ADD], capture_output=True, text=True, timeout=60, cwd=folder,
                          env=ENV, check=False)
    check('a relative name', done.returncode == 0 and read(os.path.join(folder, 'relative.json'))['traceEvents'], done.stderr)
    plain = subprocess.run([OUTBOARD, 'run', '--server', url, '--', VECTOR_ADD], capture_output=True, text=True, timeout=60, env=ENV, check=False)
    check('standard output is the program\'s', done.stdout == plain.stdout, done.stdout)


def main():
    with tempfile.TemporaryDirectory() as folder, Server(SERVER, '--driver', 'soft') as server:
        path = os.path.join(folder, 'trace.json')
        for program in VECTOR_ADD, THREADS:
            done = run(server.url, path, program)
            check(f'{os.path.basename(program)} succeeds', done.returncode == 0, done.stderr)
            calls, inserted = whole(read(path), done)
            tracks = device(read(path))
            check(f'{os.path.basename(program)}: each stream has a track', len(tracks) == (9 if program == THREADS else 1), list(tracks))
        timed(server.url, path)
        many_streams(server.url, path)
        threads = {e['tid'] for e in calls.values()}
        check('each thread has a track', len(threads) > 4, threads)
        small(server.url, path, inserted)
        ends(server.url, path, folder)
    finish()


main()
