/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tests/fuzz/fuzz_input.h"

#include "base/check.h"

static struct {
	const uint8_t *data;
	size_t size, at;
} in;

void fuzz_input_start(const uint8_t *data, size_t size)
{
	in.data = data;
	in.size = size;
	in.at = 0;
}

bool fuzz_used_up(void)
{
	return in.at >= in.size;
}

unsigned fuzz_take(unsigned below)
{
	return in.at < in.size ? in.data[in.at++] % below : 0;
}

unsigned fuzz_take_word(void)
{
	unsigned high = fuzz_take(256);

	return high << 8 | fuzz_take(256);
}

void fuzz_take_change(void *data, size_t size, unsigned below)
{
	size_t at = fuzz_take_word() % size;

	((uint8_t *)data)[at] = (uint8_t)fuzz_take(below);
}

void fuzz_take_bytes(void *data, size_t size)
{
	uint8_t *p = data;

	for (size_t i = 0; i < size; i++)
		p[i] = (uint8_t)fuzz_take(256);
}

const uint8_t *fuzz_take_span(size_t max, size_t *ret_size)
{
	const uint8_t *span = in.data + in.at;

	*ret_size = ob_min(max, in.size - in.at);
	in.at += *ret_size;
	return span;
}
