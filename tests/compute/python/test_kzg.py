# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""KZG against the reference vectors of c-kzg-4844, in tests/compute/data/kzg."""
import collections
import os
import pathlib
import unittest

import numpy as np

from outboard_compute import ArgumentError, FileError, OutboardError, kzg

DATA = pathlib.Path(os.environ['OUTBOARD_SOURCE']) / 'tests/compute/data/kzg'
CHUNK = 2048
TESTS, INTERNAL = 325, 19  # INTERNAL: tests of challenges, which are internal values


def spread(text):
    """The chunk numbers of a list such as 7+3,9*2,5, which is 7, 8, 9, 9, 9, 5."""
    for item in text.split(','):
        for mark in '+', '*':
            if mark in item:
                first, count = map(int, item.split(mark))
                yield from (first + (i if mark == '+' else 0) for i in range(count))
                break
        else:
            yield int(item)


def value(token, chunks):
    if token in ('null', 'true', 'false'):
        return {'null': None, 'true': True, 'false': False}[token]
    if token[0] == 'x':
        return bytes.fromhex(token[1:])
    if token[0] == 'L':
        length, places = token[1:].split(':')
        return b''.join(chunks[i] for i in spread(places))[:int(length)]
    return int(token)


def vectors():
    """Handler, name and fields of each test; a field is a list of values and may occur twice."""
    packed = (DATA / 'chunks.bin').read_bytes()
    chunks = [packed[i:i + CHUNK] for i in range(0, len(packed), CHUNK)]
    found = []
    for line in (DATA / 'vectors.txt').read_text(encoding='utf-8').splitlines():
        if line.startswith('test '):
            found.append((*line.split()[1:], collections.defaultdict(list)))
        elif not line.startswith('#'):
            name, count, *tokens = line.split()
            values = [value(token, chunks) for token in tokens]
            assert len(values) == int(count), line
            found[-1][2][name].append(values)
    return found


class Vectors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.all = vectors()
        cls.setup = kzg.Setup(DATA / 'trusted_setup.txt')

    @classmethod
    def tearDownClass(cls):
        cls.setup.close()

    def items(self, fields, name, width):
        """A list of items as an array. A wrong length raises ArgumentError, as the format
        requires."""
        values = fields[name][0]
        if any(len(item) != width for item in values):
            raise ArgumentError('an item has a wrong length', 1)
        return np.frombuffer(b''.join(values), np.uint8).reshape(-1, width)

    def answer(self, handler, f):
        """The results of the binding for a test."""
        def one(name):
            return f[name][0][0]

        setup = self.setup
        if handler == 'blob_to_kzg_commitment':
            return [[setup.commit(one('blob')).tobytes()]]
        if handler == 'compute_kzg_proof':
            return [[item.tobytes()] for item in setup.prove(one('blob'), one('z'))]
        if handler == 'compute_blob_kzg_proof':
            return [[setup.prove_blobs(one('blob'), one('commitment')).tobytes()]]
        if handler == 'verify_kzg_proof':
            return [[setup.verify(*map(one, ('commitment', 'z', 'y', 'proof')))]]
        if handler == 'verify_blob_kzg_proof':
            return [[setup.verify_blobs(*map(one, ('blob', 'commitment', 'proof')))]]
        if handler == 'verify_blob_kzg_proof_batch':
            return [[setup.verify_blobs(self.items(f, 'blobs', kzg.BLOB_BYTES), self.items(f, 'commitments', 48),
                                        self.items(f, 'proofs', 48))]]
        if handler == 'compute_cells':
            return [[cell.tobytes() for cell in setup.cells(one('blob'), proofs=False)]]
        if handler == 'compute_cells_and_kzg_proofs':
            return [[item.tobytes() for item in part] for part in setup.cells(one('blob'))]
        if handler == 'recover_cells_and_kzg_proofs':
            return [[item.tobytes() for item in part]
                    for part in setup.recover(f['cell_indices'][0], self.items(f, 'cells', kzg.CELL_BYTES))]
        if handler == 'verify_cell_kzg_proof_batch':
            return [[setup.verify_cells(self.items(f, 'commitments', 48), f['cell_indices'][0],
                                        self.items(f, 'cells', kzg.CELL_BYTES), self.items(f, 'proofs', 48))]]
        raise AssertionError(f'the binding has nothing for {handler}')

    def test_every_vector(self):
        tests = [test for test in self.all if not test[0].endswith('_challenge')]
        self.assertEqual((len(tests), len(self.all) - len(tests)), (TESTS, INTERNAL))
        for handler, name, fields in tests:
            with self.subTest(handler=handler, name=name):
                if fields['output'] == [[None]]:
                    with self.assertRaises(ArgumentError):
                        self.answer(handler, fields)
                else:
                    self.assertEqual(self.answer(handler, fields), fields['output'])

    def blobs(self, n):
        """Blobs of n tests, as an array of shape (n, 131072)."""
        good = [fields['blob'][0][0] for handler, _, fields in self.all
                if handler == 'blob_to_kzg_commitment' and fields['output'] != [[None]]]
        return np.frombuffer(b''.join(good[:n]), np.uint8).reshape(n, -1)

    def test_lists_give_the_results_of_single_items(self):
        blobs = self.blobs(3)
        commitments = self.setup.commit(blobs)
        self.assertEqual(commitments.shape, (3, 48))
        for blob, commitment in zip(blobs, commitments):
            np.testing.assert_array_equal(self.setup.commit(blob), commitment)
        proofs = self.setup.prove_blobs(blobs, commitments)
        self.assertTrue(self.setup.verify_blobs(blobs, commitments, proofs))
        self.assertFalse(self.setup.verify_blobs(blobs, commitments, proofs[::-1]))
        cells, shown = self.setup.cells(blobs[:2])
        self.assertEqual((cells.shape, shown.shape), ((2, 128, 2048), (2, 128, 48)))
        self.assertTrue(self.setup.verify_cells(commitments[1], range(128), cells[1], shown[1]))
        self.assertFalse(self.setup.verify_cells(commitments[0], range(128), cells[1], shown[1]))
        np.testing.assert_array_equal(self.setup.recover(range(0, 128, 2), cells[1, ::2], proofs=False), cells[1])
        self.assertEqual(self.setup.commit(blobs[:0]).shape, (0, 48))

    def test_elements_are_bytes_or_integers(self):
        blob = self.blobs(3)[2]
        commitment = self.setup.commit(blob)
        proof, y = self.setup.prove(blob, 7)
        self.assertTrue(self.setup.verify(commitment, (7).to_bytes(32, 'big'), int.from_bytes(y.tobytes(), 'big'), proof))
        self.assertFalse(self.setup.verify(commitment, 8, y, proof))

    def test_errors_name_the_argument(self):
        blobs = self.blobs(2).copy()
        commitments = self.setup.commit(blobs)
        bad = blobs.copy()
        bad[1, 32 * 9:32 * 10] = 255
        setup = self.setup
        for wanted, work in (
                ('blobs has 100 bytes: a multiple of 131072 .one blob. is wanted', lambda: setup.commit(bytes(100))),
                ('blobs is a float64 array of shape .131072,.', lambda: setup.commit(blobs[0].astype(float))),
                ('commitments has 1 items, and there are 2 blobs', lambda: setup.prove_blobs(blobs, commitments[:1])),
                ('blob is a uint8 array of shape .2, 131072.: one blob', lambda: setup.prove(blobs, 1)),
                ('z is -1|z.0. is -1', lambda: setup.prove(blobs[0], -1)),
                ('commitment is a uint8 array of shape .2, 48.: one point', lambda: setup.verify(commitments, 1, 1, commitments[0])),
                ('indices is a float64 array', lambda: setup.recover(np.zeros(64), np.zeros((64, 2048), np.uint8))),
                ('indices has 3 items, and there are 64 cells', lambda: setup.recover([1, 2, 3], np.zeros((64, 2048), np.uint8))),
                ('blob 1: element 9 of the blob', lambda: setup.commit(bad))):
            with self.subTest(wanted=wanted), self.assertRaisesRegex(ArgumentError, wanted) as caught:
                work()
        self.assertEqual(caught.exception.item, 4096 + 9)


class Loading(unittest.TestCase):
    def test_from_memory(self):
        with kzg.Setup((DATA / 'trusted_setup.txt').read_bytes(), cell_window=2) as setup:
            self.assertEqual(setup.commit(bytes(kzg.BLOB_BYTES)).tobytes(), b'\xc0' + bytes(47))
        with self.assertRaisesRegex(OutboardError, 'the setup is closed'):
            setup.commit(bytes(kzg.BLOB_BYTES))

    def test_what_cannot_be_loaded(self):
        with self.assertRaisesRegex(FileError, 'nonexistent') as caught:
            kzg.Setup('/nonexistent')
        self.assertIsInstance(caught.exception, OSError)
        with self.assertRaises(ArgumentError):
            kzg.Setup(b'4096\n65\n')


if __name__ == '__main__':
    unittest.main()
