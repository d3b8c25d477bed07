/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Byte shuffle: reorders numbers of 2 or 4 bytes so that byte k of all numbers is contiguous (plane
 * k), and back. No state; any thread.
 *
 *    a0 a1 a2 a3  b0 b1 b2 b3  c0 ... -> a0 b0 c0 ... | a1 b1 c1 ... | a2 b2 c2 ... | a3 b3 c3 ...
 */
#ifndef OBZ_SHUFFLE_H
#define OBZ_SHUFFLE_H

#include <stddef.h>
#include <stdint.h>

/*
 * width: 2 or 4 bytes; n: number of numbers. dst and src hold width * n bytes and must not overlap.
 */
void obz_shuffle(const uint8_t *src, size_t n, unsigned width, uint8_t *dst);
void obz_unshuffle(const uint8_t *src, size_t n, unsigned width, uint8_t *dst);
/*
 * Guesses the width of the numbers, 2 or 4: the one whose planes differ more in their own
 * distribution, estimated by entropy.
 */
unsigned obz_shuffle_guess(const uint8_t *src, size_t size);

#endif
