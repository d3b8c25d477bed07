# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""BLS12-381 in plain Python, from its definitions: the reference of the tests."""
import random

P = 0x1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab
R = 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001
G = (0x17f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb,
     0x08b3f481e3aaa0f1a09e30ed741d8ae4fcf5e095d5d00af600db18cb2c04b3edd03cc744a2888ae40caa232946c5e7e1)


def add(a, b):
    """The sum of two affine points; None is infinity."""
    if a is None or b is None:
        return b if a is None else a
    if a[0] == b[0]:
        if (a[1] + b[1]) % P == 0:
            return None
        slope = 3 * a[0] * a[0] * pow(2 * a[1], -1, P)
    else:
        slope = (b[1] - a[1]) * pow(b[0] - a[0], -1, P)
    x = (slope * slope - a[0] - b[0]) % P
    return x, (slope * (a[0] - x) - a[1]) % P


def times(scalar, point):
    total = None
    while scalar:
        if scalar & 1:
            total = add(total, point)
        point = add(point, point)
        scalar >>= 1
    return total


def compressed(point):
    if point is None:
        return bytes([0xc0]) + bytes(47)
    sign = 0x20 if point[1] > P // 2 else 0
    out = bytearray(point[0].to_bytes(48, 'big'))
    out[0] |= 0x80 | sign
    return bytes(out)


def uncompressed(point):
    if point is None:
        return bytes([0x40]) + bytes(95)
    return point[0].to_bytes(48, 'big') + point[1].to_bytes(48, 'big')


def limbs(point):
    """A point in Montgomery form."""
    if point is None:
        return bytes(96)
    return b''.join((value * 2 ** 384 % P).to_bytes(48, 'little') for value in point)


def example(n, seed):
    """Points of G1, with infinity among them, and 256-bit scalars."""
    pick = random.Random(seed)
    points = [None if i == 3 else times(pick.randrange(1, R), G) for i in range(n)]
    scalars = [pick.choice((0, 1, R - 1, R, 2 ** 256 - 1)) if i % 5 == 4 else pick.randrange(2 ** 256) for i in range(n)]
    return points, scalars


def product(points, scalars):
    total = None
    for scalar, point in zip(scalars, points):
        total = add(total, times(scalar, point))
    return total


def root(n):
    return pow(7, (R - 1) // n, R)


def transform(x, g=1):
    """The transform by its definition, O(n^2)."""
    w = root(len(x))
    return [sum(value * pow(g * pow(w, k, R), j, R) for j, value in enumerate(x)) % R for k in range(len(x))]


def reversed_bits(x):
    bits = len(x).bit_length() - 1
    return [x[int(f'{i:0{bits}b}'[::-1], 2) if bits else 0] for i in range(len(x))]
