# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Triton on the first GPU, with PyTorch's tensors: elementwise, a row-wise softmax, a product of
matrices."""
import numbers_of

torch = numbers_of.module('torch')
triton = numbers_of.module('triton')
tl = numbers_of.module('triton.language')
if not torch.cuda.is_available():
    numbers_of.skip('torch.cuda.is_available() is false')
made = torch.Generator().manual_seed(11)


def show(name, t):
    numbers_of.array(name, t.float().cpu().numpy())


@triton.jit
def add(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(z + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + at, mask=at < columns, other=-float('inf'))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * columns + at, e / tl.sum(e, axis=0), mask=at < columns)


@triton.jit
def product(a, b, c, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        inner = k + tl.arange(0, BK)
        sums += tl.dot(tl.load(a + rows[:, None] * K + inner[None, :]), tl.load(b + inner[:, None] * N + columns[None, :]))
    tl.store(c + rows[:, None] * N + columns[None, :], sums)


@numbers_of.case
def elementwise():
    x, y = (torch.randn(100000, generator=made).cuda() for _ in range(2))
    z = torch.empty_like(x)
    add[(triton.cdiv(100000, 1024),)](x, y, z, 100000, BLOCK=1024)
    show('add', z)


@numbers_of.case
def rows():
    x = torch.randn(128, 781, generator=made).cuda()
    y = torch.empty_like(x)
    softmax[(128,)](x, y, 781, BLOCK=1024)
    show('softmax', y)


@numbers_of.case
def products():
    a, b = (torch.randn(256, 256, generator=made).half().cuda() for _ in range(2))
    c = torch.empty(256, 256, device='cuda')
    product[(4, 4)](a, b, c, 256, 256, BM=64, BN=64, BK=32)
    show('product', c)


numbers_of.finish()
