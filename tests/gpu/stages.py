# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The stages of tools/dev/gpu-check: functions that take a check.Check. A stage that raises has
failed; the others still run."""
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
import time

import shares
from check import SETUP, Standing

SKIPPED = 77
FEW = ['vector_add', 'bad_launch', 'driver_errors', 'device_printf', 'host_callbacks', 'out_of_memory']
MODES = [('tcp', {}), ('unix', {}), ('shm', {}), ('tls', {}), ('striped', {}), ('packed with lz4', {'OUTBOARD_CODEC': 'lz4'}),
         ('packed with zstd', {'OUTBOARD_CODEC': 'zstd'})]


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
        c.note('GPU', done.ok, done.seconds, text=' / '.join(done.out.splitlines()[1:]))
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
    packages = ', '.join(done.out.splitlines())
    c.say('- packages: ' + packages)
    c.note('packages', done.ok, text=packages)


# ---- tests that run on a given driver ----

def tests(c):
    """Kernels against the CPU, every PTX instruction against its reference, driver calls one by
    one."""
    kernels = 'tests/compute/kernels/test_kernels_'
    items = [('kernels: ' + name, [c.program(kernels + name)]) for name in ('gpu', 'msm_gpu', 'msm_tune', 'ntt_gpu', 'kzg_gpu')]
    items.append(('kernels: twins', [c.program(kernels + 'twins'), c.build / 'tests/compute/kernels/twin.ptx']))
    items.append(('kernels: rqa_gpu', [c.program(kernels + 'rqa_gpu')]))
    items.append(('service: gpu', [c.program('tests/compute/engine/test_service_gpu'), c.driver]))
    groups = ['integer', 'bits', 'carry', 'compare', 'float', 'approx', 'half', 'cvt', 'memory', 'flow', 'warp', 'block', 'atomic', 'runtime', 'wgmma', 'tensor', 'library']
    items += [('ptx: ' + group, [c.program('tests/ptx/ptx-conformance'), '--group', group, c.driver]) for group in groups]
    items += [('calls: ' + name, [c.program('tests/unit/softapi/test-softapi-' + name), c.driver]) for name in ('streams', 'events', 'errors', *(('link',) if c.soft else ()))]  # a linker's errors are its own
    if c.small:
        items = [item for item in items if item[0] in ('kernels: gpu', 'ptx: carry')]
    for number, (name, command) in enumerate(items, 1):
        c.item(name, command, 30 if name.startswith('calls') else 120, behind=len(items) - number)


# ---- programs ----

NOT_BEGUN = (None, [], 'not begun: the time of this stage is over')


def observe_all(c, run, place, programs, timeout):
    """Runs the programs, several at a time; those that need the device alone run last. Returns
    {binary: (code, lines, stderr)}."""
    seen = {}

    def one(program):
        limit = min(timeout, c.left())
        return program.binary, run.observe(place, program, limit) if limit > 0 else NOT_BEGUN

    with concurrent.futures.ThreadPoolExecutor(c.jobs) as several:
        seen.update(several.map(one, [p for p in programs if not p.alone]))
    seen.update(one(p) for p in programs if p.alone)
    return seen


def programs(c):
    """The CUDA programs: on the driver itself what they must print, and over every kind of
    connection the same output and exit code. Those that the list says differ are compared with
    what they must print, and do not run on the driver itself."""
    sys.path.insert(0, str(c.root / 'tests' / 'programs'))
    import run  # noqa: PLC0415
    modes = [(mode, environment) for mode, environment in MODES
             if (not c.small or mode in ('tcp', 'shm', 'packed with lz4')) and not (c.resume and c.report.reached(f'over {mode}'))]
    chosen = [p for p in run.read_list() if not (p.soft and not c.small) and any(part in p.binary for part in c.only or ['']) and (not c.small or p.binary in FEW)]
    native = run.Place(str(c.build), 'native', driver=c.driver if c.links else None)
    built = [p for p in chosen if os.path.exists(native.binary(p.binary))]
    if len(built) < len(chosen):
        c.record('programs that are not built', None, text=' '.join(p.binary for p in chosen if p not in built))
    timeout = min(60, c.item_limit)
    begin = time.monotonic()
    alike = [p for p in built if not p.differs or c.soft]
    first = observe_all(c, run, native, alike, timeout)  # also in a resumed check: the others are compared with it
    native.close()
    complaints = {p.binary: run.complaints_of(p, *first[p.binary], timeout) for p in alike}
    first |= {p.binary: (p.exit, pathlib.Path(p.expected_path()).read_text(encoding='utf-8').splitlines(), '') for p in built if p not in alike}
    compared(c, 'natively', begin, first, {name: '; '.join(lines) for name, lines in complaints.items()}, 'as on the software device')
    for mode, environment in modes:
        begin, lost = time.monotonic(), ''
        with Standing(c, 'tcp' if 'packed' in mode else mode) as server:
            try:
                seen, lost = over(c, run, server, environment, first, built, timeout)
            except (RuntimeError, OSError, subprocess.SubprocessError) as why:
                c.record(f'over {mode}', False, time.monotonic() - begin, 'no server: ' + ' / '.join(str(why).splitlines()), reached=c.left() > 0)
                continue
        differ = {p.binary: '' if same(first, seen, p.binary) else difference(seen[p.binary], first[p.binary]) for p in built}
        compared(c, f'over {mode}', begin, seen, differ, 'as natively', lost)


def same(first, seen, name):
    return seen[name][0] is not None and seen[name][:2] == first[name][:2]


def over(c, run, server, environment, first, built, timeout):
    """Runs the programs on a server. If the server ends meanwhile, runs those whose result was wrong
    again on a new one. Returns the results, and how the server ended ('' if it did not)."""
    server.start().environment.update(environment)
    seen = observe_all(c, run, server.place, built, timeout)
    lost = ''
    if server.place.server.process.poll() is not None:
        lost = server.stop()
        server.start().environment.update(environment)
        seen.update(observe_all(c, run, server.place, [p for p in built if not same(first, seen, p.binary)], timeout))
    return seen, lost


def difference(seen, first):
    (code, lines, err), (want, want_lines, _) = seen, first
    at = next((i for i, pair in enumerate(zip(lines, want_lines)) if pair[0] != pair[1]), min(len(lines), len(want_lines)))
    return f'exit code {code}, natively {want}; line {at + 1}: {lines[at:at + 1]}, natively {want_lines[at:at + 1]}; {" / ".join(err.splitlines()[-3:])}'


def compared(c, name, begin, seen, wrong, how, lost=''):
    """Records a run of all programs. wrong: {binary: what is wrong or ''}. lost: how the server
    ended, '' if it did not."""
    bad = {binary: what for binary, what in wrong.items() if what}
    for binary, what in wrong.items():
        c.note(f'{name}: {binary}', not what, text=what)
    left = [binary for binary in bad if seen[binary] is NOT_BEGUN]
    text = f'{len(wrong) - len(bad)} of {len(wrong)} {how}' + (f'; not begun: {len(left)}' if left else '') + (f'; {lost.splitlines()[0]}' if lost else '')
    c.record(name, not bad and not lost, time.monotonic() - begin, text, '\n'.join([f'{binary}: {what}' for binary, what in bad.items()] + [lost]),
             reached=not left)


# ---- undocumented behaviour ----

def facts(c):
    """What the driver answers where nobody says it, and wrong calls natively and over the wire."""
    tool = c.program('tests/gpu/gpu-facts')
    for what in ('tables', 'hooks', 'selftest', 'reserve', 'streams'):
        if not c.wanted(what):
            continue
        done = c.run([tool, '-l', c.driver, what], 30)
        c.judge(what, done)
        if done.ok:
            c.text(done.out)
    if c.wanted('errors') or c.wanted('attributes'):
        wrong_calls(c, tool)
    logged(c)
    slots(c, tool)


def slots(c, tool):
    """Calls private functions of unknown purpose, once each. It is the last part of the stage,
    because each call may reach its time limit."""
    for table, slot in (('context', n) for n in ((4,) if c.small else (3, 4, 16))):
        for way in ('context', 'out'):
            name = f'slot {table}[{slot}], {way} first'
            if c.wanted(name) and c.left() <= 0:
                c.record(name, False, reached=False)
            elif c.wanted(name):  # its purpose is unknown, so a crash is a result, too
                done = c.run([tool, '-l', c.driver, 'slot', table, str(slot), way], 15, errors=False)
                c.record(name, True, done.seconds, done.out.strip().partition(': ')[2] if done.code == 0 else done.why())


def wrong_calls(c, tool):
    """Compares error codes of erroneous calls and the device's attributes, natively and
    forwarded."""
    cases = c.run([tool, 'cases'], 10).out.split()[::7 if c.small else 1]
    with Standing(c, 'unix') as server:
        forwarded = {case: server.run([tool, 'error', case], 20, errors=False) for case in cases}
        there = server.run([tool, 'attributes'], 20, errors=False)
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
    c.record('errors', not differ, text=f'{len(cases) - len(differ)} of {len(cases)} the same{": not " if differ else ""}{" ".join(differ)}',
             reached=c.left() > 0)
    here = c.run([tool, '-l', c.driver, 'attributes'], 20, errors=False)
    # Some differ on purpose: the client reports features that it does not forward as missing.
    other = [f'{a}, forwarded {b}' for a, b in itertools.zip_longest(*(re.findall('.+', d.out) for d in (here, there))) if a != b]
    c.record('attributes', here.ok and there.ok, text='; '.join(other) or 'all the same', output=here.output() + there.output(), reached=not here.cut)


def logged(c):
    """Records which private functions libraries call. A preloaded library logs the calls."""
    folder = c.root / 'tests/gpu/frameworks'
    cases = [('vector_add', [c.cuda_program('vector_add')], c.env)]
    cases += [(f'PyTorch, {what}', [c.python, folder / 'torch_libraries.py', what], c.native_env) for what in ('matmul', 'fft', 'conv', 'nccl')]
    library = pathlib.Path(c.place.name, 'libdriver-log.so')  # LD_PRELOAD cannot hold a path with blanks
    library.symlink_to(c.program('tests/gpu/libdriver-log.so'))
    for name, command, env in cases[:1] if c.small else cases:
        if not c.wanted('log: ' + name) or not os.path.exists(command[0]) and '/' in str(command[0]):
            continue
        log = pathlib.Path(c.place.name, 'log')
        log.unlink(missing_ok=True)
        done = c.run(command, 60, env(LD_PRELOAD=str(library), OUTBOARD_DRIVER_LOG=str(log)))
        text = log.read_text(encoding='utf-8') if log.exists() else ''
        c.record('log: ' + name, done.ok and bool(text), done.seconds, done.why() if not done.ok else '' if text else 'nothing was logged', done.output(),
                 reached=not done.cut)
        if done.ok is None:
            break  # the others need the same package
        if text:
            c.text(text)
            c.note('log of ' + name, text=text)


# ---- frameworks ----

def frameworks(c):
    """cuBLAS, PyTorch, CuPy, Numba-CUDA, Triton: the same numbers natively and over the wire."""
    folder = c.root / 'tests/gpu/frameworks'
    # cuBLAS runs on the software device with a compute capability that the other frameworks do not
    # accept; the suite has a separate test of that.
    names = [n for n in (() if c.soft else ('cublas',)) + ('torch', 'cupy', 'numba', 'triton') if not c.only or any(part in f'{n}, natively shm tls' for part in c.only)]
    more = {'CUBLAS_WORKSPACE_CONFIG': ':4096:8', 'PYTHONDONTWRITEBYTECODE': '1'}
    if c.soft:  # it runs only PTX, so the frameworks must not compile PTX to machine code
        more |= {'CUPY_COMPILE_WITH_PTX': '1', 'OUTBOARD_TEST_PTX_ONLY': '1', 'CUPY_CACHE_DIR': f'{c.place.name}/cupy',
                 'TRITON_CACHE_DIR': f'{c.place.name}/triton'} | {name: str(folder / 'ptx_only/ptxas') for name in (
                     'TRITON_PTXAS_PATH', 'TRITON_PTXAS_BLACKWELL_PATH')}  # which one is read depends on the version of Triton
    first = {row['name'].partition(',')[0]: row['native'] for row in c.report.rows if row['stage'] == 'frameworks' and 'native' in row}
    for number, name in enumerate(names):
        if name in first and not c.wanted(f'{name}, natively'):
            continue
        done = c.run([c.python, folder / f'{name}_numbers.py'], 90, c.native_env(**more), errors=False, behind=3 * (len(names) - number) - 1)
        c.judge(f'{name}, natively', done)
        if done.ok is not None and not done.cut:
            if done.ok:
                c.text(done.out)
            first[name] = {'code': done.code, 'lines': done.out.splitlines()}
            c.note(f'{name}, what it printed', native=first[name])
    names = [n for n in names if n in first and first[n]['code'] != 127]  # also those that fail: they must fail in the same way
    rounds = [(mode, name) for mode in ('shm', 'tls') for name in names]
    for mode, several in itertools.groupby(rounds, key=lambda pair: pair[0]):
        with Standing(c, mode) as server:
            for _, name in several:
                forwarded(c, server, name, first[name], [c.python, folder / f'{name}_numbers.py'], more, len(rounds) - rounds.index((mode, name)) - 1)


def forwarded(c, server, name, first, command, more, behind):
    """Compares a framework's numbers over the wire with the native ones."""
    what = f'{name}, {server.mode}'
    if not c.wanted(what):
        return
    done = server.run(command, 60, lambda place: {k: v for k, v in place.environment.items() if k != 'LD_LIBRARY_PATH'} | c.native_env() | more |
                      place.server.environment, errors=False, behind=behind)
    lines = done.out.splitlines()
    if lines == first['lines'] and done.code is not None and done.code == first['code']:
        c.record(what, True, done.seconds, 'the same numbers' + (f', and exit code {done.code}' if done.code else ''))
        return
    differ = '\n'.join(difflib.unified_diff(first['lines'], lines, 'natively', server.mode, n=0, lineterm=''))
    c.record(what, False, done.seconds, done.why(), f'{differ}\n{done.err}\n{done.server}', reached=not done.cut)


# ---- speed of calls ----

def table_of(c, columns):
    """Prints {column: {name: row}} as a table with a row per name, and ratios to the first
    column."""
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
    """What calls and copies cost on the driver itself and over the wire; whole programs; the wire
    beside the bare connection."""
    tool, few = c.program('tests/gpu/gpu-speed'), ['-s'] if c.small else []
    columns = {}
    for row in c.report.rows:  # of an earlier call
        if row['stage'] == 'speed' and 'value' in row:
            name, _, what = row['name'].partition(': ')
            columns.setdefault(name, {})[what] = row
    startup = c.cuda_program('vector_add')

    def started(run):
        took = [run() for _ in range(3 if c.small else 7)]
        return {'a program, start to end (vector_add)': {'value': statistics.median(d.seconds for d in took) * 1e3, 'unit': 'ms'}} \
            if all(d.ok for d in took) else {}

    def measured(name, run, behind):
        """Runs gpu-speed, and a program to measure its start. `run` runs a command."""
        if not c.wanted(f'calls, {name}'):
            return
        done = run([tool, *few], behind)
        rows = [json.loads(line) for line in done.out.splitlines() if line.endswith('}')]  # also if it reached its time limit
        if rows:
            columns[name] = {row['name']: row for row in rows} | started(lambda: run([startup], behind))
            for what, row in columns[name].items():
                c.note(f'{name}: {what}', True, value=row['value'], unit=row['unit'])
        c.judge(f'calls, {name}', done)

    modes = ('shm', 'tcp') if c.small else ('shm', 'unix', 'tcp', 'tls')
    try:
        measured('native', lambda command, behind: c.run([*command, *(['-l', c.driver] if command[0] == tool else [])], 60, errors=False, behind=behind),
                 len(modes))
        for number, mode in enumerate(modes, 1):
            with Standing(c, mode) as server:
                measured(mode, lambda command, behind, run=server.run: run(command, 60, errors=False, behind=behind), len(modes) - number)
                if mode in ('shm', 'tcp') and not c.small and c.wanted(f'outboard bench all, {mode}'):
                    bench_all(c, server, len(modes) - number)
    finally:  # also if the check is interrupted
        if columns:
            table_of(c, columns)


def bench_all(c, server, behind):
    try:
        url = server.start().server.url
        done = c.run([c.program('tools/outboard'), 'bench', 'all', '--server', url, '--rounds', '3'], 60, dict(server.place.environment), behind=behind)
    except (RuntimeError, OSError, subprocess.SubprocessError) as why:
        c.record(f'outboard bench all, {server.mode}', False, text=f'no server: {why}')
        return
    c.judge(f'outboard bench all, {server.mode}', done)
    if done.ok:
        c.text(done.out)


# ---- speed of kernels ----

def rows_note(c, name, out):
    for line in out.splitlines():
        if line.startswith('|') and not re.match(r'[|\- ]+$', line):
            c.note(name, True, row=[cell.strip() for cell in line.strip('|').split('|')])


def kernels(c):
    """The arithmetic's rates, then transforms, products and recurrence beside what is aimed at,
    natively and over the wire."""
    bench, rqa = c.program('tests/compute/kernels/obk-gpu-bench'), c.program('compute/rqa/obk-rqa-bench')
    sizes = ['-s', '1', '-m', '4', '6', '-n', '4', '8', '-r', '1', '-t', '100K'] if c.small else ['-m', '8', '24', '-n', '12', '24']
    cells = [c.program('tests/compute/kernels/obk-cells-bench'), *(['-c', '2', '-w', '4', '-b', '1', '-r', '1'] if c.small else [])]
    clocks = None
    if shutil.which('nvidia-smi'):
        clocks = subprocess.Popen(['nvidia-smi', '--query-gpu=clocks.sm,power.draw,temperature.gpu', '--format=csv,noheader,nounits', '-lms', '200'],
                                  stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    recurrence = ['--device', 'gpu', *(['--divide', '40', '--most', '5000', '--runs', '1'] if c.small else [])]
    rates, sort = c.program('tests/gpu/gpu-rates'), [c.program('tests/gpu/gpu-sort'), *(['10', '12'] if c.small else ['20', '29'])]
    steps = [('products and transforms', [bench, '-l', c.driver, *sizes], [bench, *sizes], 200),
             ('cell proofs', [*cells, '-l', c.driver], cells, 60),
             ('recurrence', [rqa, *recurrence, '--driver', c.driver], [rqa, *recurrence], 120)]
    try:
        told(c, 'instructions, natively', c.run, [rates, c.driver, '1' if c.small else '20000'], 60, 2 * len(steps) + 1)
        told(c, "CUB's sort, natively", c.run, sort, 60, 2 * len(steps))
        for number, (name, native, _, limit) in enumerate(steps):
            told(c, f'{name}, natively', c.run, native, limit, 2 * len(steps) - 1 - number)
        with Standing(c, 'shm') as server:
            for number, (name, _, command, limit) in enumerate(steps):
                told(c, f'{name}, over shm', server.run, command, limit, len(steps) - 1 - number)
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


def told(c, name, run, command, limit, behind):
    """Runs and records a benchmark. Keeps its output, also if it reached its time limit."""
    if c.wanted(name):
        done = run(command, limit, behind=behind)
        c.judge(name, done)
        if done.ok is not False or done.code is None:
            c.say()
            c.say(done.out.strip())
            c.say()
            rows_note(c, name, done.out)


# ---- commands of the compute library ----

def commands(c):
    """outboard msm, ntt and kzg bench: the CPU beside the GPU, natively and over shm, once it is
    known what products on this GPU go by."""
    tool, setup = c.program('tools/outboard'), c.root / SETUP
    # A bench prints only at its end, so sizes that may take long are separate commands.
    steps = [('msm', '--from', 3, '--to', 4, '--runs', 1)] if c.small else [
        ('msm', '--from', 8, '--to', 16), ('msm', '--from', 17, '--to', 20), ('ntt', '--from', 10, '--to', 22),
        ('kzg', '--setup', setup, '--blobs', 64), ('kzg', '--setup', setup, '--blobs', 64, '--table', 1536)]

    def calibrate(where, run, end, cache, behind):
        name = f'msm calibrate, {where}'
        if not c.wanted(name):
            return
        done = run([tool, 'msm', 'calibrate', '--seconds', 1 if c.small else 8, '--device', 'gpu', '--json', *end], cache, behind)
        c.judge(name, done)
        for profile in cache.glob('outboard/msm-gpu-*.profile'):
            c.text(profile.read_text())
            c.note(f'{name}: the profile', report=profile.read_text())

    def each(where, run, end, behind):
        cache = c.report.path.absolute().with_suffix('.profiles') / where  # kept: later calls use its profiles
        cache.mkdir(parents=True, exist_ok=True)
        calibrate(where, run, end, cache, behind + len(steps))
        for number, (verb, *more) in enumerate(steps, 1):
            name = f'{verb} bench {" ".join(str(word) for word in more if word not in ("--setup", setup))}, {where}'
            if not c.wanted(name):
                continue
            done = run([tool, verb, 'bench', *more, '--device', 'gpu', '--json', *end], cache, behind + len(steps) - number)
            c.judge(name, done)
            if done.ok:
                c.text(done.out)
                c.note(f'{name}: what it printed', report=json.loads(done.out))

    def natively(command, cache, behind):
        return c.run(command, 60, c.env(XDG_CACHE_HOME=str(cache)), errors=False, behind=behind)

    def over_shm(command, cache, behind):
        return server.run(command, 60, lambda place: dict(place.environment, XDG_CACHE_HOME=str(cache)), errors=False, behind=behind)

    each('natively', natively, ['--driver', c.driver], len(steps) + 1)
    with Standing(c, 'shm') as server:
        each('over shm', over_shm, [], 0)


# name: (function, time limit in seconds). Without --stages the stages run in this order.
STAGES = {
    'machine': (machine, 60), 'facts': (facts, 150), 'tests': (tests, 330), 'programs': (programs, 300), 'speed': (speed, 180), 'kernels': (kernels, 420),
    'commands': (commands, 180), 'frameworks': (frameworks, 300), 'green': (shares.green, 300), 'mps': (shares.mps, 90),
}
