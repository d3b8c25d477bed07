# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Shared by the stages of tools/dev/gpu-check: paths, commands with a time limit, and servers."""
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
# The programs that the check needs, relative to the build directory.
PROGRAMS = ['server/outboard-server', 'tools/outboard', 'tests/gpu/gpu-facts', 'tests/gpu/gpu-speed', 'tests/gpu/gpu-rates', 'tests/ptx/ptx-conformance',
            'tests/compute/kernels/test_kernels_gpu', 'tests/compute/kernels/test_kernels_msm_gpu', 'tests/compute/kernels/test_kernels_msm_tune', 'tests/compute/kernels/test_kernels_ntt_gpu',
            'tests/compute/kernels/test_kernels_twins', 'tests/compute/kernels/test_kernels_rqa_gpu', 'tests/compute/engine/test_service_gpu',
            'tests/compute/kernels/test_kernels_kzg_gpu', 'tests/compute/kernels/obk-cells-bench',
            'tests/unit/softapi/test-softapi-streams', 'tests/unit/softapi/test-softapi-events', 'tests/unit/softapi/test-softapi-errors',
            'tests/unit/softapi/test-softapi-link', 'tests/gpu/gpu-sort', 'tests/e2e/e2e_partition', 'tests/compute/kernels/obk-gpu-bench', 'compute/rqa/obk-rqa-bench']
LIBRARIES = ['client-shim/libcuda.so.1', 'client-shim/libnvidia-ml.so.1', 'client-shim/liboutboard-files.so', 'client-shim/liboutboard-buffers.so',
             'softdevice/' + SOFT, 'tests/gpu/libdriver-log.so']
FILES = ['tests/compute/kernels/twin.ptx']
SETUP = 'tests/compute/data/kzg/trusted_setup.txt'  # relative to the root
DEATH = 2  # seconds within which a server that was killed or crashed has ended
LOG_LINES = 20  # of a server's log, after a command that failed


class Done(NamedTuple):
    """The result of a command. code None: it reached a time limit and was killed. err: its stderr,
    if that was captured separately."""
    code: int | None
    out: str
    seconds: float
    err: str = ''
    cut: bool = False   # the stage's time limit ended it, not its own
    server: str = ''    # after a failed command: whether its server still ran, and the server's log

    @property
    def ok(self):
        return {0: True, SKIPPED: None}.get(self.code, False)

    def output(self):
        """Returns all output, for the details of a report."""
        return '\n'.join(filter(None, (self.out.strip(), self.err.strip(), self.server.strip())))

    def why(self):
        """Returns why it failed or was skipped: how it ended and its last lines of output."""
        lines = (self.out + self.err).strip().splitlines()
        if self.code == SKIPPED:
            return (lines or ['skipped'])[-1]
        how = f'{"cut off" if self.cut else "time is up"} after {self.seconds:.0f} s' if self.code is None else \
            f'signal {-self.code}' if self.code < 0 else f'exit code {self.code}'
        return ' / '.join([how + (': ' + ' / '.join(lines[-3:]) if lines else '')] + self.server.splitlines()[:1])


class NoDriver(Exception):
    """The given driver cannot be used. The text says why and what to do."""


class Check:
    def __init__(self, root, build, driver, out, *, small, jobs, python, limit, only, resume=False, item_limit=float('inf')):
        self.root, self.build = pathlib.Path(root), pathlib.Path(build)
        self.driver, self.small, self.jobs, self.python, self.only = driver, small, jobs, python, only
        self.resume, self.item_limit = resume, item_limit
        self.soft = driver.endswith(SOFT)
        self.end = time.monotonic() + limit
        self.stage_end = self.end
        self.place = tempfile.TemporaryDirectory(prefix='outboard-gpu-check-')
        self.links = None  # a folder with the driver as libcuda.so.1, if it was given by path
        if '/' in driver:
            self.driver = os.path.abspath(driver)
            self.links = pathlib.Path(self.place.name, 'driver')
            self.links.mkdir()
            (self.links / 'libcuda.so.1').symlink_to(self.driver)
        self.report = Report(out, resume)
        self.report.left = lambda: max(0.0, self.end - time.monotonic())
        self.say, self.note, self.record, self.text = self.report.say, self.report.note, self.report.record, self.report.text

    def judge(self, name, done, text=''):
        """Records a command, which succeeds with exit code 0. One that the stage's time limit ended
        is recorded as not reached."""
        self.record(name, done.ok, done.seconds, text if done.ok else done.why(), done.output(), reached=not done.cut)

    # ---- commands ----

    def wanted(self, name):
        """Whether the item is selected, and no earlier call has finished it."""
        return (not self.only or any(part in name for part in self.only)) and not (self.resume and self.report.reached(name))

    def left(self):
        return min(self.end, self.stage_end) - time.monotonic()

    def program(self, name):
        return str(self.build / name)

    def cuda_program(self, name):
        return os.path.join(os.environ.get('OUTBOARD_TEST_PROGRAMS') or self.build / 'tests/programs', name)

    def env(self, **more):
        """Returns the environment for one of our programs that uses the driver directly."""
        folders = [self.links, self.build / 'lib' if (self.build / 'lib').is_dir() else None, os.environ.get('LD_LIBRARY_PATH')]
        return dict(os.environ, LC_ALL='C', LD_LIBRARY_PATH=':'.join(str(f) for f in folders if f), OUTBOARD_TEST_LIBCUDA=self.driver,
                    OUTBOARD_TEST_SETUP=str(self.root / SETUP), **more)

    def native_env(self, **more):
        """Returns the environment for another program that uses the driver directly: without our
        settings and libraries, the path of the driver aside."""
        env = dict(os.environ, **more)
        if self.links:
            env['LD_LIBRARY_PATH'] = ':'.join(filter(None, [str(self.links), env.get('LD_LIBRARY_PATH')]))
        return env

    def run(self, command, limit, env=None, *, errors=True, bounded=True, behind=0):
        """Runs a command for at most `limit` seconds, and at most its share of the stage's
        remaining time if `behind` commands follow. bounded=False: ignores the stage's time.
        errors=False: captures stderr separately."""
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
                with contextlib.suppress(subprocess.TimeoutExpired):  # a process blocked in the kernel does not end
                    process.wait(10)
            seconds = time.monotonic() - begin
            out.seek(0)
            err.seek(0)
            return Done(code, out.read().decode(errors='replace'), seconds, err.read().decode(errors='replace'), cut=code is None and left < limit)

    def item(self, name, command, limit, env=None, behind=0):
        """Runs a command if the item is wanted, and records it with the parts that it skipped. It
        succeeds with exit code 0."""
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
        """Returns the attributes of driver and device, printed by a separate process. Raises
        NoDriver if the driver cannot be used."""
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
    """A server with one kind of connection for a sequence of commands. It is started for the first
    command, and again after a command that failed, so that the state after that failure (a dead
    server, a hanging GPU) does not fail the next command. If it cannot be started, the command
    that needs it fails."""

    def __init__(self, check, mode):
        self.check, self.mode, self.place = check, mode, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        """Starts the server if it does not run. Returns the Place (tests/programs/run.py) of the
        server. Raises RuntimeError if the server does not use the driver to be checked."""
        c = self.check
        if self.place and self.place.server.process.poll() is not None:
            self.stop()
        if self.place:
            return self.place
        sys.path.insert(0, str(c.root / 'tests' / 'programs'))
        import run as programs  # noqa: PLC0415: needs the path above, in a source tree or a bundle
        os.environ['OUTBOARD_LOG'] = 'info'
        try:
            self.place = programs.Place(str(c.build), self.mode, driver=c.server_driver())
        finally:
            del os.environ['OUTBOARD_LOG']
        self.place.environment.pop('OUTBOARD_LOG', None)
        self.place.environment['OUTBOARD_TIMEOUT'] = '60'  # a busy machine must not fail a command
        if c.server_driver() == 'auto' and 'driver: libcuda' not in self.place.server.log():
            raise RuntimeError('the server did not take the driver and fell back to the software device:\n' + self.stop())
        return self.place

    def stop(self):
        """Stops the server. Returns whether it still ran and the end of its log; '' if there is no
        server."""
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
        """As Check.run, with the client library. env(place) returns the environment; without env
        it is the place's."""
        if self.check.left() <= 0:
            return Done(None, '', 0, cut=True)
        try:
            place = self.start()
        except (RuntimeError, OSError, subprocess.SubprocessError) as why:
            self.stop()
            return Done(126, f'no server: {why}', 0)
        done = self.check.run(place.command(*command), limit, env(place) if env else dict(place.environment), **how)
        if done.ok is not False:
            return done
        with contextlib.suppress(subprocess.TimeoutExpired):  # the client of a server that dies may notice before the server has ended
            place.server.process.wait(DEATH)
        return done._replace(server=self.stop())
