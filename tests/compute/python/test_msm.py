# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Multi-scalar multiplication against affine additions in plain Python."""
import os
import signal
import threading
import time
import unittest

import numpy as np

import curve
from outboard_compute import ArgumentError, Context, OutboardError, Status, msm

GPU_DRIVER = os.environ.get('OUTBOARD_TEST_LIBCUDA') or os.environ.get('OUTBOARD_GPU_DRIVER')
N = 24
POINTS, SCALARS = curve.example(N, 1)
SUM = curve.product(POINTS, SCALARS)
PACKED = np.frombuffer(b''.join(map(curve.compressed, POINTS)), np.uint8).reshape(N, 48)
WIDE = np.frombuffer(b''.join(map(curve.uncompressed, POINTS)), np.uint8).reshape(N, 96)
LIMBS = np.frombuffer(b''.join(map(curve.limbs, POINTS)), '<u8').astype(np.uint64).reshape(N, 12)


def scalar_bytes(values, order):
    return np.frombuffer(b''.join(value.to_bytes(32, order) for value in values), np.uint8).reshape(-1, 32)


class Product(unittest.TestCase):
    def test_formats_of_points_and_results(self):
        for points in (PACKED, WIDE, LIMBS, PACKED.tobytes(), bytearray(WIDE.tobytes())):
            self.assertEqual(msm.msm(points, SCALARS).tobytes(), curve.compressed(SUM))
        wide = msm.msm(PACKED, SCALARS, result='uncompressed')
        limbs = msm.msm(PACKED, SCALARS, result='montgomery')
        self.assertEqual((wide.shape, wide.tobytes()), ((96,), curve.uncompressed(SUM)))
        self.assertEqual((limbs.dtype, limbs.shape, limbs.tobytes()), (np.uint64, (12,), curve.limbs(SUM)))

    def test_formats_of_scalars(self):
        reduced = [value % curve.R for value in SCALARS]
        mont = np.frombuffer(b''.join((v * 2 ** 256 % curve.R).to_bytes(32, 'little') for v in reduced), '<u8')
        little, big = scalar_bytes(SCALARS, 'little'), scalar_bytes(SCALARS, 'big')
        for scalars, order in ((little, 'little'), (big, 'big'), (little.tobytes(), 'little'), (SCALARS, 'big'),
                               (mont.astype(np.uint64).reshape(N, 4), 'little')):
            self.assertEqual(msm.msm(PACKED, scalars, byteorder=order).tobytes(), curve.compressed(SUM))
        self.assertNotEqual(msm.msm(PACKED, big, byteorder='little').tobytes(), curve.compressed(SUM))

    def test_layouts(self):
        double = np.repeat(PACKED, 2, axis=0)[::2]
        self.assertFalse(double.flags.c_contiguous)
        self.assertEqual(msm.msm(double, SCALARS).tobytes(), curve.compressed(SUM))
        fortran = np.asfortranarray(scalar_bytes(SCALARS, 'little'))
        self.assertEqual(msm.msm(PACKED, fortran).tobytes(), curve.compressed(SUM))

    def test_bases_serve_ranges_and_batches(self):
        with Context('cpu') as context, msm.Bases(PACKED, context=context) as bases:
            self.assertEqual(len(bases), N)
            self.assertGreaterEqual(bases.nbytes, N * 96)
            part = bases.msm(SCALARS[:7], offset=10)
            self.assertEqual(part.tobytes(), curve.compressed(curve.product(POINTS[10:17], SCALARS[:7])))
            batch = scalar_bytes(SCALARS + SCALARS[::-1], 'little').reshape(2, N, 32)
            both = bases.msm(batch)
            self.assertEqual(both.shape, (2, 48))
            self.assertEqual([row.tobytes() for row in both], [
                curve.compressed(SUM), curve.compressed(curve.product(POINTS, SCALARS[::-1]))])
            self.assertEqual(bases.msm(batch[:0]).shape, (0, 48))
            self.assertEqual(bases.msm(batch[0, :0]).tobytes(), curve.compressed(None))
            with self.assertRaisesRegex(OutboardError, 'GPU') as caught:
                bases.plan(0)
        self.assertEqual(caught.exception.status, Status.UNSUPPORTED)
        with self.assertRaisesRegex(OutboardError, 'the set of points is closed'):
            bases.msm(SCALARS)

    def test_errors_name_the_argument(self):
        bad = PACKED.copy()
        bad[5, 47] ^= 1
        for wanted, item, work in (
                ('points is a float64 array of shape .24, 48.: bytes, or a uint8', None, lambda: msm.msm(PACKED.astype(float), SCALARS)),
                ('points is a uint8 array of shape .24, 47.', None, lambda: msm.msm(PACKED[:, :47], SCALARS)),
                ('points has 100 bytes: a multiple of 48', None, lambda: msm.msm(PACKED.tobytes()[:100], SCALARS)),
                ('point 5 ', 5, lambda: msm.msm(bad, SCALARS)),
                ('scalars is a int64 array of shape .24,.', None, lambda: msm.msm(PACKED, np.arange(N))),
                (r'scalars\[1\] is -1: 0 to 2\^256', 1, lambda: msm.msm(PACKED, [1, -1])),
                ('scalar 4 ', 4, lambda: msm.msm(PACKED[:5], [1, 2, 3, 4, curve.R], canonical=True)),
                ('trust is .all.: it must be one of check, curve', None, lambda: msm.msm(PACKED, SCALARS, trust='all')),
                ('byteorder is .le.: it must be one of little, big', None, lambda: msm.msm(PACKED, SCALARS, byteorder='le')),
                ('offset is -1', None, lambda: msm.Bases(PACKED).msm(SCALARS, offset=-1)),
                ('', None, lambda: msm.Bases(PACKED).msm(SCALARS, offset=1))):
            with self.subTest(wanted=wanted), self.assertRaisesRegex(ArgumentError, wanted) as caught:
                work()
            if item is not None:
                self.assertEqual(caught.exception.item, item)

    def test_devices_share_a_batch(self):
        batch = np.tile(scalar_bytes(SCALARS, 'little'), (16, 1, 1))
        with Context('cpu:1,cpu:1', profile='', strategy='equal') as context, msm.Bases(PACKED, context=context) as bases:
            self.assertEqual({row.tobytes() for row in bases.msm(batch)}, {curve.compressed(SUM)})
            self.assertTrue(all(device.pieces for device in context.devices))
            context.set_strategy('single')
            before = [device.pieces for device in context.devices]
            bases.msm(batch)
            self.assertEqual(sorted(device.pieces > old for device, old in zip(context.devices, before)), [False, True])


@unittest.skipUnless(GPU_DRIVER, 'the build has no GPU kernels or no software device')
class Gpu(unittest.TestCase):
    def test_plan(self):
        with Context('gpu:0', driver=GPU_DRIVER, profile='') as context, msm.Bases(PACKED, context=context) as bases:
            plan = bases.plan(0, batch=2)
        self.assertIn(plan.method, ('buckets', 'copies', 'multiples'))
        self.assertGreater(plan.seconds, 0)
        self.assertGreater(plan.window, 0)


class Endings(unittest.TestCase):
    def test_ctrl_c(self):
        """Ctrl-C while points are checked, a call without a ticket, and while products are
        computed."""
        many = np.tile(PACKED, (100_000, 1))
        with Context('cpu:1') as context, msm.Bases(PACKED, trust='subgroup', context=context) as bases:
            batch = np.tile(scalar_bytes(SCALARS, 'little'), (65_536, 1, 1))
            for work in lambda: msm.Bases(many, context=context), lambda: bases.msm(batch):
                sent = []

                def send(sent=sent):
                    sent.append(time.monotonic())
                    os.kill(os.getpid(), signal.SIGINT)

                timer = threading.Timer(0.3, send)
                timer.start()
                with self.assertRaises(KeyboardInterrupt):
                    work()
                self.assertLess(time.monotonic() - sent[0], 5)  # about 0.1 s on an idle machine
                timer.join()


if __name__ == '__main__':
    unittest.main()
