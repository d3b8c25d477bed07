# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""What the stages of tools/dev/gpu-check share: where things lie, commands with a limit, servers, and the report.

The report grows as the check goes, so that a check that is cut off has said what it knew: Markdown for people, and beside it one JSON object a line
(stage, name, ok: true, false or null for skipped, seconds, and what was seen).
"""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

SKIPPED = 77
SOFT = 'liboutboard-softdevice.so'
# What is built for the check, relative to the build directory.
PROGRAMS = ['server/outboard-server', 'tools/outboard', 'tests/gpu/gpu-facts', 'tests/gpu/gpu-speed', 'tests/gpu/gpu-rates', 'tests/ptx/ptx-conformance',
            'tests/kernels/test_kernels_gpu', 'tests/kernels/test_kernels_msm_gpu', 'tests/kernels/test_kernels_msm_tune', 'tests/kernels/test_kernels_ntt_gpu',
            'tests/kernels/test_kernels_twins', 'tests/kernels/test_kernels_rqa_gpu', 'tests/service/test_service_gpu',
            'tests/kernels/test_kernels_kzg_gpu', 'tests/kernels/obk-cells-bench',
            'tests/unit/softapi/test-softapi-streams', 'tests/unit/softapi/test-softapi-events', 'tests/unit/softapi/test-softapi-errors',
            'tests/unit/softapi/test-softapi-link', 'tests/kernels/obk-gpu-bench', 'kernels/rqa/obk-rqa-bench']
LIBRARIES = ['client-shim/libcuda.so.1', 'softdevice/' + SOFT, 'tests/gpu/libdriver-log.so']
FILES = ['tests/kernels/twin.ptx']
SETUP = 'tests/data/kzg/trusted_setup.txt'  # relative to the root
# What keeps one server from being of use, where others may be; NoDriver is none of these.
NOT_SERVED = (RuntimeError, OSError, subprocess.SubprocessError)


class Done(NamedTuple):
    """What a command did. code None: its time was up. err: what it wrote to stderr, where that was kept apart."""
    code: int | None
    out: str
    seconds: float
    err: str = ''

    @property
    def ok(self):
        return {0: True, SKIPPED: None}.get(self.code, False)

    def why(self):
        """The last lines it wrote, for a report of failure or of what is missing."""
        lines = (self.out + self.err).strip().splitlines()
        if self.code == SKIPPED:
            return (lines or ['skipped'])[-1]
        how = 'time is up' if self.code is None else f'signal {-self.code}' if self.code < 0 else f'exit code {self.code}'
        return how + (': ' + ' / '.join(lines[-3:]) if lines else '')


class NoDriver(Exception):
    """The driver that was named cannot be used; says why and what to do."""


class Check:
    def __init__(self, root, build, driver, out, *, small, jobs, python, limit, only):
        self.root, self.build = pathlib.Path(root), pathlib.Path(build)
        self.driver, self.small, self.jobs, self.python, self.only = driver, small, jobs, python, only
        self.soft = driver.endswith(SOFT)
        self.end = time.monotonic() + limit
        self.stage, self.stage_end = '', self.end
        self.failed = self.counted = self.skipped = 0
        self.place = tempfile.TemporaryDirectory(prefix='outboard-gpu-check-')
        self.links = None  # a folder that holds the driver as libcuda.so.1, if it is not the loader's own
        if '/' in driver:
            self.driver = os.path.abspath(driver)
            self.links = pathlib.Path(self.place.name, 'driver')
            self.links.mkdir()
            (self.links / 'libcuda.so.1').symlink_to(self.driver)
        self.markdown = open(out, 'w', encoding='utf-8')
        self.lines = open(pathlib.Path(out).with_suffix('.jsonl'), 'w', encoding='utf-8')

    # ---- the report ----

    def say(self, text=''):
        print(text, flush=True)
        self.markdown.write(text + '\n')
        self.markdown.flush()

    def note(self, name, ok=True, seconds=None, **seen):
        """A line of JSON alone."""
        self.lines.write(json.dumps({'stage': self.stage, 'name': name, 'ok': ok, 'seconds': seconds and round(seconds, 3), **seen}) + '\n')
        self.lines.flush()

    def record(self, name, ok, seconds=None, text=''):
        """One thing that was looked at: ok True, False, or None for skipped."""
        self.counted += 1
        self.failed += ok is False
        self.skipped += ok is None
        word = {True: 'ok', False: '**FAILED**', None: 'skipped'}[ok]
        self.say(f'- {word}: {name}' + (f' ({seconds:.1f} s)' if seconds is not None else '') + (f': {text}' if text else ''))
        self.note(name, ok, seconds, text=text)

    def text(self, lines):
        """Output as it was."""
        self.say('```')
        self.say(lines.strip('\n'))
        self.say('```')

    # ---- commands ----

    def wanted(self, name):
        return not self.only or any(part in name for part in self.only)

    def left(self):
        return min(self.end, self.stage_end) - time.monotonic()

    def program(self, name):
        return str(self.build / name)

    def cuda_program(self, name):
        return os.path.join(os.environ.get('OUTBOARD_TEST_PROGRAMS') or self.build / 'tests/programs', name)

    def env(self, **more):
        """For a program of ours on the driver itself."""
        folders = [self.links, self.build / 'lib' if (self.build / 'lib').is_dir() else None, os.environ.get('LD_LIBRARY_PATH')]
        return dict(os.environ, LC_ALL='C', LD_LIBRARY_PATH=':'.join(str(f) for f in folders if f), OUTBOARD_TEST_LIBCUDA=self.driver,
                    OUTBOARD_TEST_SETUP=str(self.root / SETUP), **more)

    def native_env(self, **more):
        """For somebody else's program on the driver itself: nothing of ours is in its way."""
        env = dict(os.environ, **more)
        if self.links:
            env['LD_LIBRARY_PATH'] = ':'.join(filter(None, [str(self.links), env.get('LD_LIBRARY_PATH')]))
        return env

    def run(self, command, limit, env=None, *, errors=True, bounded=True):
        """Runs a command for so many seconds, or what is left of the stage's time; with errors=False stderr is kept apart."""
        limit = min(limit, self.left()) if bounded else limit
        if limit <= 0:
            return Done(None, 'not begun: the time of this stage is over', 0)
        begin = time.monotonic()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            try:
                process = subprocess.Popen([str(c) for c in command], env=env or self.env(), stdin=subprocess.DEVNULL, stdout=out,
                                           stderr=out if errors else err, start_new_session=True)
            except OSError as problem:
                return Done(127, f'{command[0]}: {problem.strerror}', 0)
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                with contextlib.suppress(subprocess.TimeoutExpired):  # one that the kernel holds on to does not end
                    process.wait(10)
            seconds = time.monotonic() - begin
            out.seek(0)
            err.seek(0)
            return Done(code, out.read().decode(errors='replace'), seconds, err.read().decode(errors='replace'))

    def item(self, name, command, limit, env=None):
        """A command that is right when it ends with 0; recorded, with the parts that it skipped. None if it was not wanted."""
        if not self.wanted(name):
            return None
        done = self.run(command, limit, env)
        skips = ', '.join(line for line in done.out.splitlines() if line.startswith('skip '))
        self.record(name, done.ok, done.seconds, skips if done.ok else done.why())
        return done

    # ---- servers ----

    def server_driver(self):
        return 'soft' if self.soft else 'auto' if not self.links else self.driver

    @contextlib.contextmanager
    def served(self, mode):
        """A place (tests/programs/run.py) whose server stands on the driver. An error if the server took another one, or if there is no time left for it."""
        if self.left() <= 0:
            raise TimeoutError('not begun: the time of this stage is over')
        sys.path.insert(0, str(self.root / 'tests' / 'programs'))
        import run as programs  # noqa: PLC0415: it lies beside us in a tree and in a bundle alike
        os.environ['OUTBOARD_LOG'] = 'info'
        try:
            place = programs.Place(str(self.build), mode, driver=self.server_driver())
        finally:
            del os.environ['OUTBOARD_LOG']
        place.environment.pop('OUTBOARD_LOG', None)
        place.environment['OUTBOARD_TIMEOUT'] = '60'  # a machine that is busy with other things is slow, not wrong
        try:
            if self.server_driver() == 'auto' and 'driver: libcuda' not in place.server.log():
                raise NoDriver('the server did not take the driver and fell back to the software device:\n' + place.server.log())
            yield place
        finally:
            place.close()

    def usable(self):
        """Looks whether the driver can be used at all, in a process of its own; raises NoDriver."""
        done = self.run([self.program('tests/gpu/gpu-facts'), '-l', self.driver, 'attributes'], 60, bounded=False)
        if done.code == 127:
            raise NoDriver(f'{done.out}: build it, or name the build directory with -b')
        if done.code != 0:
            raise NoDriver(f'the driver {self.driver} cannot be used ({done.why()}).\nName the one to check with -l: libcuda.so.1 as the loader finds it, '
                           f'a path, or {self.build}/softdevice/{SOFT} to try this script without a GPU.')
        return done.out

    def close(self):
        self.markdown.close()
        self.lines.close()
        self.place.cleanup()
