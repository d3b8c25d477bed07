# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The installed package: its metadata, contexts, errors, and calls that end early."""
import gc
import importlib.metadata
import os
import pathlib
import pickle
import re
import signal
import sys
import threading
import time
import unittest
from typing import get_args

import numpy as np

import outboard_compute
from outboard_compute import CancelledError, Context, OutboardError, Status, TimedOutError, rqa

SOURCE = pathlib.Path(os.environ['OUTBOARD_SOURCE'])
LONG = np.random.default_rng(1).normal(size=200_000)  # an analysis takes seconds
SHORT = np.sin(np.arange(500) * 0.1)


def threads():
    return len(os.listdir('/proc/self/task'))


def until(condition, what):
    """Waits at most ten seconds for something that another thread does."""
    end = time.monotonic() + 10
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(what)
        os.sched_yield()


class Installed(unittest.TestCase):
    def test_metadata(self):
        meta = importlib.metadata.metadata('outboard-compute')
        project = re.search(r"version: '([^']+)'", (SOURCE / 'meson.build').read_text(encoding='utf-8'))[1]
        self.assertEqual((meta['Version'], outboard_compute.__version__), (project, project))
        self.assertEqual(meta['License'], 'Apache-2.0')
        self.assertIn('rqa.analyse(', meta.get_payload())
        files = {str(path): path for path in importlib.metadata.files('outboard-compute')}
        for name in ('outboard_compute/py.typed', 'outboard_compute/_abi.py', 'outboard_compute/liboutboard.so.0',
                     f'outboard_compute-{project}.dist-info/LICENSE'):
            self.assertIn(name, files)
        wheel = importlib.metadata.distribution('outboard-compute').read_text('WHEEL')
        self.assertRegex(wheel, f'Tag: py3-none-linux_{os.uname().machine}\n')
        self.assertRegex(wheel, 'Root-Is-Purelib: false\n')

    def test_the_library_is_the_one_of_the_package(self):
        folder = pathlib.Path(outboard_compute.__file__).parent
        maps = pathlib.Path('/proc/self/maps').read_text(encoding='utf-8')
        self.assertEqual(set(re.findall(r'\S*/liboutboard\.so\S*', maps)), {str(folder / 'liboutboard.so.0')})
        self.assertIn(sys.prefix, str(folder))

    def test_every_module_is_part_of_the_build(self):
        lines = (SOURCE / 'compute/python/meson.build').read_text(encoding='utf-8')
        for path in (SOURCE / 'compute/python/outboard_compute').glob('*.py'):
            self.assertIn(f"'{path.stem}'", lines)

    def test_status_has_every_value(self):
        names = outboard_compute._abi.ENUMS['outboard_status']
        self.assertEqual([f'OUTBOARD_{status.name}' for status in Status], list(names))


class Contexts(unittest.TestCase):
    def test_devices_and_statistics(self):
        with Context('cpu:2,cpu:1', profile='') as context:
            before = context.devices
            self.assertEqual([device.name for device in before], ['cpu:2', 'cpu:1'])
            self.assertEqual([(d.kind, d.units, d.breaker, d.pieces) for d in before],
                             [('cpu', 2, 'closed', 0), ('cpu', 1, 'closed', 0)])
            rqa.analyse(SHORT, eps=0.1, context=context)
            self.assertEqual(sum(device.pieces for device in context.devices), 1)
            self.assertEqual(context.threshold(0, 'rqa'), 1)
            with self.assertRaisesRegex(ValueError, "operation is 'fft': it must be one of msm, ntt, kzg, rqa"):
                context.threshold(0, 'fft')

    def test_strategies(self):
        """Each strategy for a context and for one call. test_msm.py checks that they divide the
        work."""
        with Context('cpu:1,cpu:1', profile='') as context:
            for strategy in get_args(outboard_compute.Strategy):
                context.set_strategy(strategy)
                rqa.analyse(SHORT, eps=0.1, context=context, strategy=strategy)
            with self.assertRaisesRegex(ValueError, "strategy is 'best': it must be one of auto, single"):
                rqa.analyse(SHORT, eps=0.1, context=context, strategy='best')

    def test_what_cannot_be_opened(self):
        for devices, status in ('foo', Status.ARGUMENT), ('gpu:7', Status.NO_DEVICE):
            with self.subTest(devices=devices), self.assertRaises(OutboardError) as caught:
                Context(devices, driver='/nonexistent/libcuda.so.1')
            self.assertEqual(caught.exception.status, status)
            self.assertEqual(str(caught.exception), caught.exception.text)
            self.assertGreater(len(caught.exception.text), 20)

    def test_calibrate_stores_a_profile(self):
        with Context('cpu:1') as context:
            context.calibrate(0.2)
        self.assertTrue(list(pathlib.Path(os.environ['XDG_CACHE_HOME']).glob('outboard/profile-*')))

    def test_a_closed_context_is_refused(self):
        context = Context('cpu:1')
        with rqa.SeriesSet([SHORT], context=context) as held:
            context.close()
            context.close()
            self.assertTrue(context.closed)
            for use in (lambda: context.devices, lambda: rqa.analyse(SHORT, eps=0.1, context=context)):
                with self.assertRaisesRegex(OutboardError, 'the context is closed'):
                    use()
            with self.assertRaisesRegex(CancelledError, 'context or handle was closed'):
                held.analyse(eps=0.1)

    def test_threads_end_with_their_context(self):
        before = threads()
        context = Context('cpu:3')
        held = rqa.SeriesSet([SHORT], context=context)
        held.analyse(eps=0.1)
        self.assertGreater(threads(), before)
        context.close()  # the set keeps the C library's context alive
        del held
        gc.collect()
        until(lambda: threads() <= before, 'threads of a context that was closed and collected')

    def test_close_cancels_calls_of_other_threads(self):
        context, seen, started = Context('cpu:1'), [], threading.Event()

        def work():
            try:
                rqa.analyse(LONG, m=4, eps=1.0, context=context, progress=lambda _: started.set())
            except OutboardError as error:
                seen.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        self.assertTrue(started.wait(10))
        context.close()
        thread.join(10)
        self.assertEqual([type(error) for error in seen], [CancelledError])

    def test_many_threads_share_a_context(self):
        wanted, seen = repr(rqa.analyse(SHORT, m=2, eps=0.1)), []
        workers = [threading.Thread(target=lambda: seen.append(repr(rqa.analyse(SHORT, m=2, eps=0.1))))
                   for _ in range(16)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(seen, [wanted] * 16)

    def test_fork(self):
        wanted = repr(rqa.analyse(SHORT, eps=0.1))
        with Context('cpu:1') as context:
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    said = str(repr(rqa.analyse(SHORT, eps=0.1)) == wanted)
                    try:
                        rqa.analyse(SHORT, eps=0.1, context=context)
                    except OutboardError as error:
                        said += error.text
                    os.write(writer, said.encode())
                finally:
                    os._exit(0)
            os.close(writer)
            with os.fdopen(reader) as file:
                said = file.read()
            os.waitpid(child, 0)
        self.assertRegex(said, '^Truethe context was opened before fork')


class Endings(unittest.TestCase):
    def test_progress_rises_in_the_calling_thread(self):
        seen, where = [], set()

        def progress(done):
            seen.append(done)
            where.add(threading.get_ident())
            if len(seen) == 5:
                raise InterruptedError

        with self.assertRaises(InterruptedError):
            rqa.analyse(LONG, m=3, eps=0.5, progress=progress)
        self.assertEqual((seen, where), (sorted(seen), {threading.get_ident()}))
        self.assertGreaterEqual(seen[0], 0)
        self.assertLess(seen[-1], 1)

    def test_progress_ends_with_one(self):
        seen = []
        rqa.analyse(SHORT, eps=0.1, progress=seen.append)
        self.assertEqual((seen, seen[-1]), (sorted(seen), 1.0))

    def test_an_exception_of_progress_ends_the_call(self):
        begun = time.monotonic()
        with self.assertRaisesRegex(ZeroDivisionError, 'division'):
            rqa.analyse(LONG, m=4, eps=1.0, progress=lambda _: 1 / 0)
        self.assertLess(time.monotonic() - begun, 5)

    def test_timeout(self):
        with self.assertRaises(TimedOutError) as caught:
            rqa.analyse(LONG, m=4, eps=1.0, timeout=0.15)
        self.assertEqual(caught.exception.status, Status.TIMEOUT)
        self.assertIn('not done within 0.15 seconds', caught.exception.text)
        self.assertIsInstance(caught.exception, TimeoutError)

    def test_event(self):
        event = threading.Event()
        with self.assertRaisesRegex(CancelledError, 'by its event') as caught:
            rqa.analyse(LONG, m=4, eps=1.0, cancel=event, progress=lambda _: event.set())
        self.assertEqual(caught.exception.status, Status.CANCELLED)

    def test_ctrl_c(self):
        """A signal arrives while the C library computes; no progress function runs Python code."""
        for work in (lambda: rqa.analyse(LONG, m=4, eps=1.0),
                     lambda: rqa.sweep([LONG[:2000]] * 10_000, m=[1, 2, 3], eps=[0.5, 1.0])):
            sent = []

            def send(sent=sent):
                sent.append(time.monotonic())
                os.kill(os.getpid(), signal.SIGINT)

            timer = threading.Timer(0.5, send)
            timer.start()
            with self.assertRaises(KeyboardInterrupt):
                work()
            ended = time.monotonic()
            timer.join()
            self.assertLess(ended - sent[0], 5)  # about 0.1 s on an idle machine

    def test_the_gil_is_released(self):
        count, over = [0], threading.Event()

        def spin():
            while not over.is_set():
                count[0] += 1

        thread = threading.Thread(target=spin)
        thread.start()
        begun = count[0]
        rqa.analyse(LONG[:40_000], m=3, eps=0.5)
        counted = count[0] - begun
        over.set()
        thread.join()
        self.assertGreater(counted, 1000)

    def test_errors_can_be_copied(self):
        try:
            rqa.analyse(SHORT, m=0, eps=0.1)
        except OutboardError as error:
            again = pickle.loads(pickle.dumps(error))
            self.assertEqual((type(again), again.text, again.status), (type(error), error.text, error.status))


if __name__ == '__main__':
    unittest.main()
