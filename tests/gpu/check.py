# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""What the stages of tools/dev/gpu-check share: where things lie, commands with a limit, and
servers."""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

from report import Report

SKIPPED = 77
SOFT = 'liboutboard-softdevice.so'
# What is built for the check, relative to the build directory.
PROGRAMS = ['server/outboard-server', 'tools/outboard', 'tests/gpu/gpu-facts', 'tests/gpu/gpu-speed', 'tests/gpu/gpu-rates', 'tests/ptx/ptx-conformance',
            'tests/compute/kernels/test_kernels_gpu', 'tests/compute/kernels/test_kernels_msm_gpu', 'tests/compute/kernels/test_kernels_msm_tune', 'tests/compute/kernels/test_kernels_ntt_gpu',
            'tests/compute/kernels/test_kernels_twins', 'tests/compute/kernels/test_kernels_rqa_gpu', 'tests/compute/engine/test_service_gpu',
            'tests/compute/kernels/test_kernels_kzg_gpu', 'tests/compute/kernels/obk-cells-bench',
            'tests/unit/softapi/test-softapi-streams', 'tests/unit/softapi/test-softapi-events', 'tests/unit/softapi/test-softapi-errors',
            'tests/unit/softapi/test-softapi-link', 'tests/gpu/gpu-sort', 'tests/compute/kernels/obk-gpu-bench', 'compute/rqa/obk-rqa-bench']
LIBRARIES = ['client-shim/libcuda.so.1', 'softdevice/' + SOFT, 'tests/gpu/libdriver-log.so']
FILES = ['tests/compute/kernels/twin.ptx']
SETUP = 'tests/compute/data/kzg/trusted_setup.txt'  # relative to the root
LOG_LINES = 20  # of a server behind something that failed


class Done(NamedTuple):
    """What a command did. code None: its time was up. err: what it wrote to stderr, where that was
    kept apart."""
    code: int | None
    out: str
    seconds: float
    err: str = ''
    cut: bool = False   # by the end of the stage's time, not by its own limit
    server: str = ''    # what became of the server, behind a command that failed on one

    @property
    def ok(self):
        return {0: True, SKIPPED: None}.get(self.code, False)

    def output(self):
        """All there is to read of it, for the details of a report."""
        return '\n'.join(filter(None, (self.out.strip(), self.err.strip(), self.server.strip())))

    def why(self):
        """The last lines it wrote, for a report of failure or of what is missing."""
        lines = (self.out + self.err).strip().splitlines()
        if self.code == SKIPPED:
            return (lines or ['skipped'])[-1]
        how = f'{"cut off" if self.cut else "time is up"} after {self.seconds:.0f} s' if self.code is None else \
            f'signal {-self.code}' if self.code < 0 else f'exit code {self.code}'
        return ' / '.join([how + (': ' + ' / '.join(lines[-3:]) if lines else '')] + self.server.splitlines()[:1])


class NoDriver(Exception):
    """The driver that was named cannot be used; says why and what to do."""


class Check:
    def __init__(self, root, build, driver, out, *, small, jobs, python, limit, only, resume=False, item_limit=float('inf')):
        self.root, self.build = pathlib.Path(root), pathlib.Path(build)
        self.driver, self.small, self.jobs, self.python, self.only = driver, small, jobs, python, only
        self.resume, self.item_limit = resume, item_limit
        self.soft = driver.endswith(SOFT)
        self.end = time.monotonic() + limit
        self.stage_end = self.end
        self.place = tempfile.TemporaryDirectory(prefix='outboard-gpu-check-')
        self.links = None  # a folder that holds the driver as libcuda.so.1, if it is not the loader's own
        if '/' in driver:
            self.driver = os.path.abspath(driver)
            self.links = pathlib.Path(self.place.name, 'driver')
            self.links.mkdir()
            (self.links / 'libcuda.so.1').symlink_to(self.driver)
        self.report = Report(out, resume)
        self.report.left = lambda: max(0.0, self.end - time.monotonic())
        self.say, self.note, self.record, self.text = self.report.say, self.report.note, self.report.record, self.report.text

    def judge(self, name, done, text=''):
        """Records a command that is right when it ends with 0; what the end of the stage's time cut
        off was not reached."""
        self.record(name, done.ok, done.seconds, text if done.ok else done.why(), done.output(), reached=not done.cut)

    # ---- commands ----

    def wanted(self, name):
        """Whether it is asked for, and no earlier call has seen what comes of it."""
        return (not self.only or any(part in name for part in self.only)) and not (self.resume and self.report.reached(name))

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

    def run(self, command, limit, env=None, *, errors=True, bounded=True, behind=0):
        """Runs a command for so many seconds, or its share of what is left of the stage's time when
        `behind` others are still to come; with errors=False stderr is kept apart."""
        limit = min(limit, self.item_limit)
        left = max(self.left() / (behind + 1), self.left() - 10 * behind) if bounded else limit
        if left <= 0:
            return Done(None, '', 0, cut=True)
        begin = time.monotonic()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            try:
                process = subprocess.Popen([str(c) for c in command], env=env or self.env(), stdin=subprocess.DEVNULL, stdout=out,
                                           stderr=out if errors else err, start_new_session=True)
            except OSError as problem:
                return Done(127, f'{command[0]}: {problem.strerror}', 0)
            try:
                code = process.wait(min(limit, left))
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
            return Done(code, out.read().decode(errors='replace'), seconds, err.read().decode(errors='replace'), cut=code is None and left < limit)

    def item(self, name, command, limit, env=None, behind=0):
        """A command that is right when it ends with 0; recorded, with the parts that it skipped, if
        it was wanted."""
        if self.wanted(name):
            done = self.run(command, limit, env, behind=behind)
            self.judge(name, done, ', '.join(line for line in done.out.splitlines() if line.startswith('skip ')))
            if reports := [line for line in done.out.splitlines() if line.startswith('report')]:
                self.text('\n'.join(reports))
                self.note(f'{name}: reported', text=reports)

    # ---- servers ----

    def server_driver(self):
        return 'soft' if self.soft else 'auto' if not self.links else self.driver

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
        self.report.close()
        self.place.cleanup()


class Standing:
    """A server of one kind for one command after the other: started when one is first asked for,
    and anew behind a command that failed, so that what a command leaves behind (a dead server, a
    GPU that hangs) is not held against the next. A server that cannot be started fails the
    command that asked for it."""

    def __init__(self, check, mode):
        self.check, self.mode, self.place = check, mode, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        """The place (tests/programs/run.py) whose server stands on the driver that is checked; an
        error if the server took another one."""
        c = self.check
        if self.place and self.place.server.process.poll() is not None:
            self.stop()
        if self.place:
            return self.place
        sys.path.insert(0, str(c.root / 'tests' / 'programs'))
        import run as programs  # noqa: PLC0415: it lies beside us in a tree and in a bundle alike
        os.environ['OUTBOARD_LOG'] = 'info'
        try:
            self.place = programs.Place(str(c.build), self.mode, driver=c.server_driver())
        finally:
            del os.environ['OUTBOARD_LOG']
        self.place.environment.pop('OUTBOARD_LOG', None)
        self.place.environment['OUTBOARD_TIMEOUT'] = '60'  # a machine that is busy with other things is slow, not wrong
        if c.server_driver() == 'auto' and 'driver: libcuda' not in self.place.server.log():
            raise RuntimeError('the server did not take the driver and fell back to the software device:\n' + self.stop())
        return self.place

    def stop(self):
        """What there is to say of the server that ends: whether it still ran, and the end of its
        log."""
        if not self.place:
            return ''
        server = self.place.server
        code = server.process.poll()
        how = 'the server still ran' if code is None else f'the server had ended with {f"signal {-code}" if code < 0 else f"exit code {code}"}'
        told = '\n'.join([how, *server.log().splitlines()[-LOG_LINES:]])
        self.place.close()
        self.place = None
        return told

    def run(self, command, limit, env=None, **how):
        """As Check.run, with the client's library; env(place) gives the environment if it is not
        the place's own."""
        if self.check.left() <= 0:
            return Done(None, '', 0, cut=True)
        try:
            place = self.start()
        except (RuntimeError, OSError, subprocess.SubprocessError) as why:
            self.stop()
            return Done(126, f'no server: {why}', 0)
        done = self.check.run(place.command(*command), limit, env(place) if env else dict(place.environment), **how)
        return done if done.ok is not False else done._replace(server=self.stop())
