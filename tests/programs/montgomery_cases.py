# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Writes montgomery_cases.h: operands modulo the BLS12-381 base field prime, and the products and
inverses that Python's integers give."""

import random
import sys

# The prime of the BLS12-381 base field, from the curve's generator x (IETF
# draft-irtf-cfrg-pairing-friendly-curves, 4.2.1).
X = -0xD201000000010000
PRIME = (X - 1) ** 2 * (X**4 - X**2 + 1) // 3 + X
LIMBS = 12
R = 1 << (32 * LIMBS)
CASES = 96


def limbs(number):
    return "{" + ", ".join(f"0x{number >> (32 * i) & 0xFFFFFFFF:08x}u" for i in range(LIMBS)) + "}"


def table(name, numbers):
    rows = ",\n\t".join(limbs(n) for n in numbers)
    return f"static const uint32_t {name}[{len(numbers)}][LIMBS] = {{\n\t{rows}}};\n"


def main():
    draw = random.Random(381)
    edges = [0, 1, PRIME - 1, R % PRIME, (R - 1) % PRIME, (1 << 380), (1 << 352) - 1, 0xFFFFFFFF << 320]
    edges = [e % PRIME for e in edges]
    a = [x for x in edges for _ in edges] + [draw.randrange(PRIME) for _ in range(CASES - len(edges) ** 2)]
    b = [x for _ in edges for x in edges] + [draw.randrange(PRIME) for _ in range(CASES - len(edges) ** 2)]
    inverse_r = pow(R, -1, PRIME)
    product = [x * y * inverse_r % PRIME for x, y in zip(a, b)]
    # The inverse in Montgomery form: (x R)^(p-2) R = x^-1 R; zero stays zero.
    inverse = [pow(x * inverse_r, PRIME - 2, PRIME) * R % PRIME for x in a]
    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.write("/* Written by montgomery_cases.py. */\n#include <stdint.h>\n")
        out.write(f"enum {{ LIMBS = {LIMBS}, CASES = {CASES} }};\n")
        out.write(f"#define PRIME_INVERSE 0x{-pow(PRIME, -1, 1 << 64) % (1 << 64):016x}ull\n")
        out.write(f"#define PRIME_LIMBS {limbs(PRIME)}\n#define ONE_LIMBS {limbs(R % PRIME)}\n")
        out.write(f"#define EXPONENT_LIMBS {limbs(PRIME - 2)}\n")
        out.write(table("CASE_A", a) + table("CASE_B", b) + table("CASE_PRODUCT", product) + table("CASE_INVERSE", inverse))


main()
