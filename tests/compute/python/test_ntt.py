# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Transforms against their definition, and the encoding of elements."""
import os
import random
import unittest

import numpy as np

import curve
from outboard_compute import ArgumentError, Context, OutboardError, TimedOutError, ntt

GPU_DRIVER = os.environ.get('OUTBOARD_TEST_LIBCUDA') or os.environ.get('OUTBOARD_GPU_DRIVER')


def elements(n, seed):
    pick = random.Random(seed)
    return [pick.choice((0, 1, curve.R - 1)) if i % 7 == 6 else pick.randrange(curve.R) for i in range(n)]


class Transform(unittest.TestCase):
    def test_definition(self):
        for log_n in 0, 1, 3, 6:
            x = elements(1 << log_n, log_n)
            with self.subTest(log_n=log_n):
                self.assertEqual(ntt.decode(ntt.transform(ntt.encode(x))), curve.transform(x))

    def test_inverse_and_coset(self):
        x, g = elements(64, 1), 5
        there = ntt.transform(ntt.encode(x), coset=g)
        self.assertEqual(ntt.decode(there), curve.transform(x, g))
        self.assertEqual(ntt.decode(ntt.transform(there, inverse=True, coset=g)), x)

    def test_orders(self):
        x = elements(32, 2)
        turned, wanted = curve.reversed_bits(x), curve.transform(x)
        for order, data, result in (('nn', x, wanted), ('nr', x, curve.reversed_bits(wanted)), ('rn', turned, wanted),
                                    ('rr', turned, curve.reversed_bits(wanted))):
            with self.subTest(order=order):
                self.assertEqual(ntt.decode(ntt.transform(ntt.encode(data), order=order)), result)

    def test_formats(self):
        x = elements(16, 3)
        wanted = curve.transform(x)
        for form in 'little', 'big':
            data = ntt.encode(x, form)
            self.assertEqual((data.dtype, data.shape), (np.uint8, (16, 32)))
            self.assertEqual(data.tobytes(), b''.join(value.to_bytes(32, form) for value in x))
            self.assertEqual(ntt.decode(ntt.transform(data, byteorder=form), form), wanted)
            with ntt.Plan(4, format=form, coset=3) as plan:
                self.assertEqual(ntt.decode(plan.run(data), form), curve.transform(x, 3))
        mont = ntt.encode(x)
        self.assertEqual(mont.tobytes(), b''.join((value * 2 ** 256 % curve.R).to_bytes(32, 'little') for value in x))

    def test_batches_and_places(self):
        rows = [elements(8, seed) for seed in range(6)]
        data = np.stack([ntt.encode(row) for row in rows]).reshape(2, 3, 8, 4)
        before = data.copy()
        with ntt.Plan(3) as plan:
            found = plan.run(data)
            np.testing.assert_array_equal(data, before)
            self.assertEqual(found.shape, (2, 3, 8, 4))
            self.assertEqual([ntt.decode(row) for row in found.reshape(6, 8, 4)], [curve.transform(row) for row in rows])
            other = np.empty_like(data)
            self.assertIs(plan.run(data, out=other), other)
            np.testing.assert_array_equal(other, found)
            self.assertIs(plan.run(data, out=data), data)
            np.testing.assert_array_equal(data, found)
            np.testing.assert_array_equal(plan.run(np.ascontiguousarray(before[:, ::-1])[:, ::-1]), found)
            self.assertEqual(plan.run(data[:0]).shape, (0, 3, 8, 4))
        with self.assertRaisesRegex(OutboardError, 'the plan is closed'):
            plan.run(data)

    @unittest.skipUnless(GPU_DRIVER, 'the build has no GPU kernels or no software device')
    def test_a_gpu_gives_the_same_bytes(self):
        """On the software device, or with OUTBOARD_TEST_LIBCUDA=libcuda.so.1 on a GPU."""
        data = np.stack([ntt.encode(elements(16, seed)) for seed in range(8)])
        with Context('gpu:0,cpu:1', driver=GPU_DRIVER, profile='', fallback=False) as context:
            self.assertEqual([device.kind for device in context.devices], ['gpu', 'cpu'])
            found = ntt.transform(data, context=context, strategy='equal')
            self.assertEqual([(device.pieces, device.failures) for device in context.devices], [(1, 0), (1, 0)])
        self.assertEqual([ntt.decode(row) for row in found], [curve.transform(ntt.decode(row)) for row in data])

    def test_errors_name_the_argument(self):
        good = ntt.encode(elements(8, 4))
        high = ntt.encode(elements(8, 4), 'little').copy()
        high[5] = 255
        frozen = good.copy()
        frozen.flags.writeable = False
        plan = ntt.Plan(3)
        for wanted, work in (
                ('data is a int64 array of shape .8, 4.: a uint64 array', lambda: plan.run(good.astype(np.int64))),
                ('data is a list', lambda: plan.run([1, 2])),
                ('data is a uint64 array of shape .4, 4.: the plan is for', lambda: plan.run(good[:4])),
                ('data is a uint8 array of shape .8, 32.: the plan is for elements in the format montgomery', lambda: plan.run(high)),
                ('data is a uint64 array of shape .3, 4.: .* power of two', lambda: ntt.transform(good[:3])),
                ('out is a uint64 array of shape .8, 4.: a writable', lambda: plan.run(good, out=frozen)),
                ('out is a uint64 array of shape .4, 4.', lambda: plan.run(good, out=good[:4])),
                ('log_n is 27: 0 to 26', lambda: ntt.Plan(27)),
                ('order is .xx.: it must be one of nn, nr', lambda: ntt.transform(good, order='xx')),
                ('element 5 ', lambda: ntt.transform(high))):
            with self.subTest(wanted=wanted), self.assertRaisesRegex(ArgumentError, wanted) as caught:
                work()
        self.assertEqual(caught.exception.item, 5)

    def test_a_timeout_ends_a_large_transform(self):
        with ntt.Plan(22) as plan:
            data = np.zeros((1, 1 << 22, 4), np.uint64)
            with self.assertRaises(TimedOutError):
                for _ in range(20):
                    plan.run(data, out=data, timeout=1e-4)


if __name__ == '__main__':
    unittest.main()
