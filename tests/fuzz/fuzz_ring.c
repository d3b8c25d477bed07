/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A ring in shared memory and a peer that may write any values into its header. No byte outside the
 * ring may be accessed. While the peer does not change the header, the bytes read must equal the
 * bytes written.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "transport/ring.h"

#define SIZE (32u << 10)

struct run {
	struct obt_ring_shared shared;
	struct obt_ring_writer w;
	struct obt_ring_reader r;
	uint8_t out[2 * SIZE], in[2 * SIZE];
	uint64_t written, read;
	bool touched;
};

static uint64_t number(const uint8_t **at, const uint8_t *end, size_t bytes)
{
	uint64_t n = 0;

	for (size_t i = 0; i < bytes && *at < end; i++)
		n |= (uint64_t) * (*at)++ << 8 * i;
	return n;
}

static void move(struct run *run, bool write, size_t size)
{
	struct iovec iov[2] = { { run->out, size / 3 }, { run->out + size / 3, size - size / 3 } };
	ssize_t n;

	for (size_t i = 0; write && i < size; i++)
		run->out[i] = (uint8_t)((run->written + i) * 2654435761u >> 9);
	n = write ? obt_ring_write(&run->w, iov, 2, -1) : obt_ring_read(&run->r, run->in, size, -1);
	if (n > (ssize_t)size || (n < 0 && (!run->touched || errno != EPROTO)))
		abort();
	for (ssize_t i = 0; !write && !run->touched && i < n; i++)
		if (run->in[i] != (uint8_t)((run->read + (uint64_t)i) * 2654435761u >> 9))
			abort();
	*(write ? &run->written : &run->read) += (uint64_t)(n > 0 ? n : 0);
	if (!run->touched && run->written - run->read > SIZE)
		abort();
}

/* Returns a number near the present one, or any number. */
static void touch(struct run *run, unsigned what, uint64_t value, bool near)
{
	_Atomic uint64_t *word = what == 0 ? &run->shared.head
		: what == 1                ? &run->shared.base
					   : &run->shared.tail;

	run->touched = true;
	atomic_store(word, near ? atomic_load(word) + (value & 0x1ffff) - 0x10000 : value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *at = data, *end = data + size;
	struct run *run = aligned_alloc(128, sizeof *run);
	uint8_t *bytes = malloc(SIZE);

	if (!run || !bytes)
		abort();
	memset(run, 0, sizeof *run);
	obt_ring_writer_init(&run->w, &run->shared, bytes, SIZE);
	obt_ring_reader_init(&run->r, &run->shared, bytes, SIZE);
	while (at < end) {
		unsigned what = *at++;

		if (what < 160)
			move(run, what & 1, number(&at, end, 2));
		else if (what < 200)
			atomic_store(
				what & 1 ? &run->shared.reader_asleep : &run->shared.writer_asleep,
				(uint32_t)number(&at, end, 1));
		else
			touch(run, what % 3, number(&at, end, 8), what & 8);
		obt_ring_readable(&run->r);
		obt_ring_writable(&run->w);
		obt_ring_unread(&run->shared);
	}
	free(bytes);
	free(run);
	return 0;
}
