#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Packs the test vectors of ethereum/c-kzg-4844 (the folder tests/ of a checkout) into vectors.txt
and chunks.bin, see README.md.

    pack.py CHECKOUT/tests OUTPUT-FOLDER
"""
import pathlib
import sys

import yaml

CHUNK = 2048
INLINE = 64


class Packer:
	def __init__(self):
		self.index = {}
		self.chunks = []

	def chunk(self, data):
		data = data.ljust(CHUNK, b'\0')
		if data not in self.index:
			self.index[data] = len(self.chunks)
			self.chunks.append(data)
		return self.index[data]

	def runs(self, data):
		"""Chunk numbers of the data: first+count for consecutive chunks, chunk*count for a
		repeated one."""
		out = []
		for at in range(0, len(data), CHUNK):
			i = self.chunk(data[at:at + CHUNK])
			if out and out[-1][1] > 0 and out[-1][0] + out[-1][1] == i:
				out[-1][1] += 1
			elif out and out[-1][0] == i and out[-1][1] in (1,) or out and out[-1][0] == i and out[-1][1] < 0:
				out[-1][1] = -2 if out[-1][1] == 1 else out[-1][1] - 1
			else:
				out.append([i, 1])
		return ','.join(f'{i}' if n == 1 else f'{i}+{n}' if n > 0 else f'{i}*{-n}' for i, n in out)

	def token(self, value):
		if isinstance(value, bool):
			return 'true' if value else 'false'
		if value is None:
			return 'null'
		if isinstance(value, int):
			return str(value)
		data = bytes.fromhex(value[2:])
		if len(data) <= INLINE:
			return 'x' + value[2:]
		return f'L{len(data)}:{self.runs(data)}'

	def line(self, name, value):
		if isinstance(value, list) and value and isinstance(value[0], list): # such as [cells, proofs]: a line each
			return ''.join(self.line(name, v) for v in value)
		values = value if isinstance(value, list) else [value]
		return f'{name} {len(values)} ' + ' '.join(self.token(v) for v in values) + '\n'


def main():
	source, target = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
	packer, text = Packer(), '# made by pack.py\n'
	for path in sorted(source.glob('*/kzg-mainnet/*/data.yaml')):
		case = yaml.load(path.read_text(), yaml.CSafeLoader)
		name = path.parent.name.removeprefix(path.parts[-4] + '_case_')
		text += f'test {path.parts[-4]} {name}\n'
		for key, value in case['input'].items():
			if key == 'cosets_evals': # cells, given as their elements
				value = ['0x' + ''.join(element[2:] for element in cell) for cell in value]
			text += packer.line(key, value)
		if path.parts[-4] == 'compute_kzg_proof' and case['output']: # [proof, y], of two lengths
			case['output'] = [[part] for part in case['output']]
		text += packer.line('output', case['output'])
	(target / 'vectors.txt').write_text(text)
	(target / 'chunks.bin').write_bytes(b''.join(packer.chunks))


main()
