# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The stages of tools/dev/gpu-check. Each takes the Check; a stage that raises has failed, the others still run."""
import concurrent.futures
import difflib
import itertools
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from check import NOT_SERVED, SETUP

SKIPPED = 77
FEW = ['vector_add', 'bad_launch', 'driver_errors', 'device_printf', 'host_callbacks', 'out_of_memory']
MODES = [('tcp', {}), ('unix', {}), ('shm', {}), ('tls', {}), ('striped', {}), ('packed with lz4', {'OUTBOARD_CODEC': 'lz4'}),
         ('packed with zstd', {'OUTBOARD_CODEC': 'zstd'})]


def not_served(c, name, why):
    """Records that there was no server for this; others may come."""
    c.record(name, False, text=' / '.join(str(why).splitlines()))


def first_line(path, start):
    for line in pathlib.Path(path).read_text(encoding='utf-8', errors='replace').splitlines():
        if line.startswith(start):
            return line.split(':', 1)[1].strip()
    return 'unknown'


# ---- the machine ----

def machine(c):
    """What it is: GPU, driver, clocks, processor, kernel, packages."""
    if shutil.which('nvidia-smi'):
        fields = 'name,driver_version,pstate,clocks.sm,clocks.max.sm,clocks.mem,power.limit,memory.total,pcie.link.gen.current,pcie.link.width.current,' \
                 'mig.mode.current,ecc.mode.current,persistence_mode,compute_mode'
        done = c.run(['nvidia-smi', f'--query-gpu={fields}', '--format=csv'], 20, os.environ.copy())
        c.text(done.out)
        c.note('nvidia-smi', done.ok, done.seconds, text=done.out)
    else:
        c.say('- no nvidia-smi')
    facts = {
        'processor': f'{first_line("/proc/cpuinfo", "model name")}, {os.cpu_count()} threads, {len(os.sched_getaffinity(0))} for us',
        'memory': first_line('/proc/meminfo', 'MemTotal'), 'kernel': platform.release(), 'C library': ' '.join(platform.libc_ver()),
        'Python of this script': platform.python_version(), 'driver library': c.driver,
    }
    for name, value in facts.items():
        c.say(f'- {name}: {value}')
        c.note(name, text=value)
    begin = time.monotonic()
    attributes = c.usable()
    c.record('the driver starts', True, time.monotonic() - begin, ', '.join(attributes.splitlines()[:4]))
    if not c.soft and not c.wanted('packages'):
        return
    done = c.run([c.python, '-c', 'import importlib.metadata as m\nfor p in ("torch", "triton", "cupy-cuda13x", "cupy-cuda12x", "numba", "numba-cuda", '
                  '"numpy"):\n try: print(p, m.version(p))\n except m.PackageNotFoundError: print(p, "missing")'], 20, c.native_env())
    c.say('- packages: ' + ', '.join(done.out.split('\n')[:-1]))


# ---- tests that take a driver ----

def tests(c):
    """Kernels against the CPU, every PTX instruction against its reference, driver calls one by one."""
    kernels = 'tests/kernels/test_kernels_'
    items = [('kernels: ' + name, [c.program(kernels + name)]) for name in ('gpu', 'msm_gpu', 'msm_tune', 'ntt_gpu', 'kzg_gpu')]
    items.append(('kernels: twins', [c.program(kernels + 'twins'), c.build / 'tests/kernels/twin.ptx']))
    items.append(('kernels: rqa_gpu', [c.program(kernels + 'rqa_gpu')]))
    items.append(('service: gpu', [c.program('tests/service/test_service_gpu'), c.driver]))
    groups = ['integer', 'bits', 'carry', 'compare', 'float', 'approx', 'half', 'cvt', 'memory', 'flow', 'warp', 'block', 'atomic', 'runtime', 'library']
    items += [('ptx: ' + group, [c.program('tests/ptx/ptx-conformance'), '--group', group, c.driver]) for group in groups]
    items += [('calls: ' + name, [c.program('tests/unit/softapi/test-softapi-' + name), c.driver]) for name in ('streams', 'events', 'errors', 'link')]
    if c.small:
        items = [item for item in items if item[0] in ('kernels: gpu', 'ptx: carry')]
    for name, command in items:
        done = c.item(name, command, 30 if name.startswith('calls') else 120)
        if done and done.ok is False:
            c.text('\n'.join(done.out.splitlines()[-60:]))


# ---- programs ----

def observe_all(c, run, place, programs, timeout):
    """{binary: (code, lines, stderr)}, several at a time; those that want the device for themselves come last."""
    seen = {}

    def one(program):
        limit = min(timeout, c.left())
        return program.binary, run.observe(place, program, limit) if limit > 0 else (None, [], 'not begun: the time of this stage is over')

    with concurrent.futures.ThreadPoolExecutor(c.jobs) as several:
        seen.update(several.map(one, [p for p in programs if not p.alone]))
    seen.update(one(p) for p in programs if p.alone)
    return seen


def programs(c):
    """The CUDA programs: on the driver itself what they must print, and over every kind of connection the same output and exit code."""
    sys.path.insert(0, str(c.root / 'tests' / 'programs'))
    import run  # noqa: PLC0415
    chosen = [p for p in run.read_list() if c.wanted(p.binary) and (not c.small or p.binary in FEW)]
    native = run.Place(str(c.build), 'native', driver=c.driver if c.links else None)
    built = [p for p in chosen if os.path.exists(native.binary(p.binary))]
    if len(built) < len(chosen):
        c.record('programs that are not built', None, text=' '.join(p.binary for p in chosen if p not in built))
    timeout = 60
    begin = time.monotonic()
    first = observe_all(c, run, native, built, timeout)
    native.close()
    wrong = 0
    for p in built:
        complaints = run.complaints_of(p, *first[p.binary], timeout)
        wrong += bool(complaints)
        c.note('native: ' + p.binary, not complaints, text='; '.join(complaints))
        for line in complaints:
            c.say(f'    {p.binary}: {line}')
    c.record(f'native: {len(built) - wrong} of {len(built)} as on the software device', wrong == 0, time.monotonic() - begin)
    for mode, environment in MODES:
        if c.small and mode not in ('tcp', 'shm', 'packed with lz4'):
            continue
        begin, differ = time.monotonic(), 0
        try:
            with c.served('tcp' if 'packed' in mode else mode) as place:
                place.environment.update(environment)
                seen = observe_all(c, run, place, built, timeout)
        except NOT_SERVED as why:
            not_served(c, mode, why)
            continue
        for p in built:
            (code, lines, err), (want, want_lines, _) = seen[p.binary], first[p.binary]
            same = code is not None and code == want and lines == want_lines
            differ += not same
            c.note(f'{mode}: {p.binary}', same)
            if not same:
                at = next((i for i, pair in enumerate(zip(lines, want_lines)) if pair[0] != pair[1]), min(len(lines), len(want_lines)))
                c.say(f'    {p.binary}: exit code {code}, natively {want}; line {at + 1}: {lines[at:at + 1]}, natively {want_lines[at:at + 1]}; '
                      f'{" / ".join(err.splitlines()[-3:])}')
        c.record(f'{mode}: {len(built) - differ} of {len(built)} as natively', differ == 0, time.monotonic() - begin)


# ---- what no manual says ----

def facts(c):
    """What the driver answers where nobody says it, and wrong calls natively and over the wire."""
    tool = c.program('tests/gpu/gpu-facts')
    for what in ('tables', 'hooks', 'selftest', 'reserve'):
        if not c.wanted(what):
            continue
        done = c.run([tool, '-l', c.driver, what], 30)
        c.record(what, done.ok, done.seconds, '' if done.ok else done.why())
        c.text(done.out)
    if c.wanted('errors') or c.wanted('attributes'):
        try:
            wrong_calls(c, tool)
        except NOT_SERVED as why:
            not_served(c, 'error codes', why)
    logged(c)
    slots(c, tool)


def slots(c, tool):
    """Private functions that nobody knows, called once each. The last of the facts: each may take all the time it is given."""
    for table, slot in (('context', n) for n in ((4,) if c.small else (3, 4, 16, 39, 51))):
        for way in ('context', 'out'):
            name = f'slot {table}[{slot}], {way} first'
            if c.wanted(name) and c.left() <= 0:
                c.record(name, None, text='not begun: the time of this stage is over')
            elif c.wanted(name):  # nobody knows what it does: that it crashes is an answer too
                done = c.run([tool, '-l', c.driver, 'slot', table, str(slot), way], 15, errors=False)
                text = done.out.strip().partition(': ')[2] if done.code == 0 else done.why()
                c.say(f'- {name}: {text}')
                c.note(name, True, done.seconds, text=text, code=done.code)


def wrong_calls(c, tool):
    """Error codes of wrong calls and the devices' attributes, natively and forwarded."""
    cases = c.run([tool, 'cases'], 10).out.split()[::7 if c.small else 1]
    with c.served('unix') as place:
        env = dict(place.environment)
        forwarded = {case: c.run(place.command(tool, 'error', case), 20, env, errors=False) for case in cases}
        there = c.run(place.command(tool, 'attributes'), 20, env, errors=False)
    c.say('\n| wrong call | the driver | forwarded |\n|---|---|---|')
    differ = []
    for case in cases:
        native = c.run([tool, '-l', c.driver, 'error', case], 20, errors=False)
        rows = [d.out.strip().partition(': ')[2] or d.why() for d in (native, forwarded[case])]
        same = rows[0] == rows[1] and None not in (native.code, forwarded[case].code)
        differ += [] if same else [case]
        c.say(f'| {case} | {rows[0]} | {rows[1]}{"" if same else " **differs**"} |')
        c.note('error ' + case, same, native.seconds, native=rows[0], forwarded=rows[1])
    c.say()
    c.record(f'error codes: {len(cases) - len(differ)} of {len(cases)} the same', not differ, text=' '.join(differ))
    here = c.run([tool, '-l', c.driver, 'attributes'], 20, errors=False)
    # Some are meant to differ: what is not offered over the wire is said to be missing.
    other = [f'{a}, forwarded {b}' for a, b in itertools.zip_longest(*(re.findall('.+', d.out) for d in (here, there))) if a != b]
    c.record('attributes are read', here.ok and there.ok, text='; '.join(other) or 'all the same')


def logged(c):
    """Which private functions libraries call, by a log between them and the driver."""
    folder = c.root / 'tests/gpu/frameworks'
    cases = [('vector_add', [c.cuda_program('vector_add')], c.env)]
    cases += [(f'PyTorch, {what}', [c.python, folder / 'torch_libraries.py', what], c.native_env) for what in ('matmul', 'fft', 'conv', 'nccl')]
    library = pathlib.Path(c.place.name, 'libdriver-log.so')  # the loader takes no blanks in LD_PRELOAD
    library.symlink_to(c.program('tests/gpu/libdriver-log.so'))
    for name, command, env in cases[:1] if c.small else cases:
        if not c.wanted('log: ' + name) or not os.path.exists(command[0]) and '/' in str(command[0]):
            continue
        log = pathlib.Path(c.place.name, 'log')
        log.unlink(missing_ok=True)
        done = c.run(command, 60, env(LD_PRELOAD=str(library), OUTBOARD_DRIVER_LOG=str(log)))
        text = log.read_text(encoding='utf-8') if log.exists() else ''
        c.record('log: ' + name, done.ok and bool(text), done.seconds, done.why() if not done.ok else '' if text else 'nothing was logged')
        if done.ok is None:
            break  # the others need the same package
        if text:
            c.text(text)
            c.note('log of ' + name, text=text)


# ---- frameworks ----

def frameworks(c):
    """PyTorch, CuPy, Numba-CUDA, Triton: the same numbers natively and over the wire."""
    folder = c.root / 'tests/gpu/frameworks'
    names = [n for n in ('torch', 'cupy', 'numba', 'triton') if c.wanted(n)]
    more = {'CUBLAS_WORKSPACE_CONFIG': ':4096:8', 'PYTHONDONTWRITEBYTECODE': '1'}
    first = {}
    for name in names:
        done = c.run([c.python, folder / f'{name}_numbers.py'], 120, c.native_env(**more), errors=False)
        first[name] = done
        c.record(f'{name}, natively', done.ok, done.seconds, '' if done.ok else done.why())
        if done.ok is not None:
            c.text(done.out)
            c.note(f'{name}: what it printed', text=done.out)
    names = [n for n in names if first[n].code not in (SKIPPED, 127)]  # also those that fail: they should fail alike
    for mode in ('shm', 'tls') if names else ():
        with c.served(mode) as place:
            keep = {k: v for k, v in place.environment.items() if k != 'LD_LIBRARY_PATH'} | c.native_env()
            for name in names:
                done = c.run(place.command(c.python, folder / f'{name}_numbers.py'), 120, keep | more | place.server.environment, errors=False)
                a, b = (d.out.splitlines() for d in (first[name], done))
                c.record(f'{name}, {mode}: the same numbers', a == b and done.code is not None and done.code == first[name].code, done.seconds,
                         '' if a == b and done.code is not None else done.why())
                if a != b:
                    c.text('\n'.join(difflib.unified_diff(a, b, 'natively', mode, n=0, lineterm='')))


# ---- speed of calls ----

def table_of(c, columns):
    """{column: {name: row}} as a table, a row a name; ratios to the first column."""
    names = list(next(iter(columns.values()), {}))
    c.say('\n| | ' + ' | '.join(columns) + ' |\n|---|' + '---|' * len(columns))
    base = next(iter(columns.values()), {})
    for name in names:
        cells = []
        for column in columns.values():
            row = column.get(name)
            ratio = f' ({row["value"] / base[name]["value"]:.3g})' if row and column is not base and base[name]['value'] else ''
            cells.append(f'{row["value"]:.4g}{ratio}' if row else '')
        c.say(f'| {name}, {base[name]["unit"]} | ' + ' | '.join(cells) + ' |')
    c.say()


def speed(c):
    """What calls and copies cost on the driver itself and over the wire; whole programs; the wire beside the bare connection."""
    tool, few = c.program('tests/gpu/gpu-speed'), ['-s'] if c.small else []
    columns = {}
    startup = c.cuda_program('vector_add')

    def started(command, env):
        took = [c.run(command, 30, env) for _ in range(3 if c.small else 7)]
        return {'a program, start to end (vector_add)': {'value': statistics.median(d.seconds for d in took) * 1e3, 'unit': 'ms'}} \
            if all(d.ok for d in took) else {}

    def measured(name, done, extra):
        rows = [json.loads(line) for line in done.out.splitlines() if line.endswith('}')]  # also of one whose time was up
        if rows:
            columns[name] = {row['name']: row for row in rows} | extra
            for row in columns[name].values():
                c.note(f'{name}: {row.get("name", "startup")}', True, value=row['value'], unit=row['unit'])
        c.record(f'calls, {name}', done.ok, done.seconds, '' if done.ok else done.why())

    def over_wire(mode, place):
        env = dict(place.environment)
        done = c.run(place.command(tool, *few), 60, env, errors=False)
        measured(mode, done, started(place.command(startup), env))
        if mode in ('shm', 'tcp') and not c.small:
            done = c.run([c.program('tools/outboard'), 'bench', 'all', '--server', place.server.url, '--rounds', '3'], 60, env)
            c.record(f'outboard bench all, {mode}', done.ok, done.seconds, '' if done.ok else done.why())
            c.text(done.out)

    done = c.run([tool, '-l', c.driver, *few], 60, errors=False)
    measured('native', done, started([startup], c.env()))
    try:
        for mode in ('shm', 'tcp') if c.small else ('shm', 'unix', 'tcp', 'tls'):
            try:
                with c.served(mode) as place:
                    over_wire(mode, place)
            except NOT_SERVED as why:
                not_served(c, mode, why)
    finally:  # also of a check that is cut off
        if columns:
            table_of(c, columns)


# ---- speed of kernels ----

def rows_note(c, name, out):
    for line in out.splitlines():
        if line.startswith('|') and not re.match(r'[|\- ]+$', line):
            c.note(name, True, row=[cell.strip() for cell in line.strip('|').split('|')])


def kernels(c):
    """The arithmetic's rates, then transforms, products and recurrence beside what is aimed at, natively and over the wire."""
    bench, rqa = c.program('tests/kernels/obk-gpu-bench'), c.program('kernels/rqa/obk-rqa-bench')
    sizes = ['-s', '1', '-m', '4', '6', '-n', '4', '8', '-r', '1', '-t', '100K'] if c.small else ['-m', '8', '24', '-n', '12', '24']
    cells = [c.program('tests/kernels/obk-cells-bench'), *(['-c', '2', '-w', '4', '-b', '1', '-r', '1'] if c.small else [])]
    clocks = None
    if shutil.which('nvidia-smi'):
        clocks = subprocess.Popen(['nvidia-smi', '--query-gpu=clocks.sm,power.draw,temperature.gpu', '--format=csv,noheader,nounits', '-lms', '200'],
                                  stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    recurrence = ['--device', 'gpu', *(['--divide', '40', '--most', '5000', '--runs', '1'] if c.small else [])]
    rates = c.program('tests/gpu/gpu-rates')
    steps = [('products and transforms', [bench, '-l', c.driver, *sizes], [bench, *sizes], 200),
             ('cell proofs', [*cells, '-l', c.driver], cells, 60),
             ('recurrence', [rqa, *recurrence, '--driver', c.driver], [rqa, *recurrence], 120)]
    try:
        told(c, 'instructions, natively', [rates, c.driver, '1' if c.small else '20000'], 60, c.env())
        for name, native, _, limit in steps:
            told(c, f'{name}, natively', native, limit, c.env())
        with c.served('shm') as place:
            for name, _, command, limit in steps:
                told(c, f'{name}, over shm', place.command(*command), limit, dict(place.environment))
    finally:
        if clocks:
            clocks.terminate()
            try:
                lines = clocks.communicate(timeout=10)[0].splitlines()
            except subprocess.TimeoutExpired:
                clocks.kill()
                lines = []
            seen = [[float(x) for x in line.split(',')] for line in lines if re.fullmatch(r'[\d., ]+', line)]
            for i, what in enumerate(('SM clock, MHz', 'power, W', 'temperature, C')):
                values = sorted(row[i] for row in seen if len(row) == 3)
                if values:
                    c.say(f'- {what}: median {values[len(values) // 2]:g}, most {values[-1]:g}')
                    c.note(what, True, median=values[len(values) // 2], most=values[-1])


def told(c, name, command, limit, env):
    """A benchmark: recorded, its output kept, also of one whose time was up."""
    if c.wanted(name):
        done = c.run(command, limit, env)
        c.record(name, done.ok, done.seconds, '' if done.ok else done.why())
        c.say()
        c.say(done.out.strip())
        c.say()
        rows_note(c, name, done.out)


# ---- the kernels' own commands ----

def commands(c):
    """outboard msm, ntt and kzg bench: the CPU beside the GPU, natively and over shm, once it is known what products on this GPU go by."""
    tool, setup = c.program('tools/outboard'), c.root / SETUP
    # A bench prints when all of it is done: what may take long is on its own.
    steps = [('msm', '--from', 3, '--to', 4, '--runs', 1)] if c.small else [
        ('msm', '--from', 8, '--to', 16), ('msm', '--from', 17, '--to', 20), ('ntt', '--from', 10, '--to', 22),
        ('kzg', '--setup', setup, '--blobs', 64), ('kzg', '--setup', setup, '--blobs', 64, '--table', 1536)]

    def calibrate(where, begin, end, env, cache):
        name = f'msm calibrate, {where}'
        done = c.run([*begin, tool, 'msm', 'calibrate', '--seconds', 1 if c.small else 8, '--device', 'gpu', '--json', *end], 60, env, errors=False)
        c.record(name, done.ok, done.seconds, '' if done.ok else done.why())
        for profile in pathlib.Path(cache).glob('outboard/msm-gpu-*.profile'):
            c.text(profile.read_text())
            c.note(f'{name}: the profile', report=profile.read_text())

    def each(where, begin, end, env):
        with tempfile.TemporaryDirectory() as cache:
            env = dict(env, XDG_CACHE_HOME=cache)
            if c.wanted('msm calibrate'):
                calibrate(where, begin, end, env, cache)
            bench(where, begin, end, env)

    def bench(where, begin, end, env):
        for verb, *more in steps:
            name = f'{verb} bench {" ".join(str(word) for word in more if word not in ("--setup", setup))}, {where}'
            if not c.wanted(name):
                continue
            done = c.run([*begin, tool, verb, 'bench', *more, '--device', 'gpu', '--json', *end], 60, env, errors=False)
            c.record(name, done.ok, done.seconds, '' if done.ok else done.why())
            if done.ok:
                c.text(done.out)
                c.note(f'{name}: what it printed', report=json.loads(done.out))

    each('natively', [], ['--driver', c.driver], c.env())
    with c.served('shm') as place:
        each('over shm', place.command(), [], dict(place.environment))


# name: (what it is, seconds at most; 1800 together). The order is that of a run without --stages.
STAGES = {
    'machine': (machine, 60), 'facts': (facts, 150), 'tests': (tests, 330), 'programs': (programs, 300), 'speed': (speed, 180), 'kernels': (kernels, 420),
    'commands': (commands, 180), 'frameworks': (frameworks, 180),
}
