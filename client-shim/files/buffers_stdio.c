/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * liboutboard-buffers.so: fread and fwrite. The C library reads and writes large blocks directly from
 * the program's buffer, by calls of its own that cannot be replaced.
 */
#include "client-shim/files/buffers.h"

#define FETCH 4096u /* bytes; no page is smaller */

#undef fread_unlocked /* macros of some C libraries */
#undef fwrite_unlocked

/* clang-format off */
NEXT(size_t, fread, (void *p, size_t size, size_t n, FILE *file))
NEXT(size_t, fwrite, (const void *p, size_t size, size_t n, FILE *file))
NEXT(size_t, fread_unlocked, (void *p, size_t size, size_t n, FILE *file))
NEXT(size_t, fwrite_unlocked, (const void *p, size_t size, size_t n, FILE *file))
NEXT(size_t, __fread_chk, (void *p, size_t room, size_t size, size_t n, FILE *file))
NEXT(size_t, __fread_unlocked_chk, (void *p, size_t room, size_t size, size_t n, FILE *file))
/* clang-format on */

/* The bytes of n items. 0: none, or the number is too large. */
static size_t bytes_of(size_t size, size_t n)
{
	size_t bytes;

	return __builtin_mul_overflow(size, n, &bytes) ? 0 : bytes;
}

static bool items_concern(const void *p, size_t size, size_t n)
{
	return UNLIKELY(atomic_load_explicit(&buffers_marks, memory_order_relaxed) > 0) &&
		buffers_within(p, bytes_of(size, n));
}

/* One of `in` and `out` is set. */
struct items {
	type_fread *in;
	type_fwrite *out;
	char *p;
	size_t bytes;
	FILE *file;
};

static size_t transfer(const struct items *items, const struct bounce *bounce)
{
	size_t done = 0, want, got;

	do {
		want = items->bytes - done < bounce->size ? items->bytes - done : bounce->size;
		if (items->out)
			memcpy(bounce->bytes, items->p + done, want);
		got = items->in ? items->in(bounce->bytes, 1, want, items->file)
				: items->out(bounce->bytes, 1, want, items->file);
		if (items->in)
			memcpy(items->p + done, bounce->bytes, got);
		done += got;
	} while (got == want && done < items->bytes);
	return done;
}

/*
 * The first access to a page may wait for work of the device, and a function of the program in this work
 * may need the lock of the file. So pages are accessed before the lock is taken.
 */
static void fetch(const struct items *items)
{
	const volatile char *p = items->p;

	for (size_t i = 0; i < items->bytes; i += FETCH)
		if (buffers_within(items->p + i, 1))
			(void)p[i];
	if (buffers_within(items->p + items->bytes - 1, 1))
		(void)p[items->bytes - 1];
}

static size_t carry(const struct items *items, size_t size, bool lock)
{
	size_t room = items->bytes < BUFFERS_PIECE ? items->bytes : BUFFERS_PIECE, done;
	struct bounce bounce;

	if (lock)
		fetch(items);
	if (!bounce_make(&bounce, room, lock ? items->file : NULL)) {
		done = items->in ? items->in(items->p, 1, items->bytes, items->file)
				 : items->out(items->p, 1, items->bytes, items->file);
		return done / size;
	}
	pthread_cleanup_push(bounce_free, &bounce);
	done = transfer(items, &bounce);
	pthread_cleanup_pop(1);
	return done / size;
}

static size_t carry_in(type_fread *in, void *p, size_t size, size_t n, FILE *file, bool lock)
{
	return carry(
		&(struct items){ .in = in, .p = p, .bytes = size * n, .file = file }, size, lock);
}

static size_t carry_out(
	type_fwrite *out, const void *p, size_t size, size_t n, FILE *file, bool lock)
{
	char *from = (char *)(uintptr_t)p; /* NOLINT(performance-no-int-to-ptr) */

	return carry(&(struct items){ .out = out, .p = from, .bytes = size * n, .file = file },
		size, lock);
}

size_t fread(void *p, size_t size, size_t n, FILE *file)
{
	return items_concern(p, size, n) ? carry_in(next_fread(), p, size, n, file, true)
					 : next_fread()(p, size, n, file);
}

size_t fwrite(const void *p, size_t size, size_t n, FILE *file)
{
	return items_concern(p, size, n) ? carry_out(next_fwrite(), p, size, n, file, true)
					 : next_fwrite()(p, size, n, file);
}

size_t fread_unlocked(void *p, size_t size, size_t n, FILE *file)
{
	return items_concern(p, size, n) ? carry_in(next_fread_unlocked(), p, size, n, file, false)
					 : next_fread_unlocked()(p, size, n, file);
}

size_t fwrite_unlocked(const void *p, size_t size, size_t n, FILE *file)
{
	return items_concern(p, size, n)
		? carry_out(next_fwrite_unlocked(), p, size, n, file, false)
		: next_fwrite_unlocked()(p, size, n, file);
}

/* The C library ends a program that reads more than there is room for. */
static bool fits(size_t room, size_t size, size_t n)
{
	size_t bytes = bytes_of(size, n);

	return bytes && bytes <= room;
}

size_t __fread_chk(void *p, size_t room, size_t size, size_t n, FILE *file)
{
	return fits(room, size, n) && items_concern(p, size, n)
		? carry_in(next_fread(), p, size, n, file, true)
		: next___fread_chk()(p, room, size, n, file);
}

size_t __fread_unlocked_chk(void *p, size_t room, size_t size, size_t n, FILE *file)
{
	return fits(room, size, n) && items_concern(p, size, n)
		? carry_in(next_fread_unlocked(), p, size, n, file, false)
		: next___fread_unlocked_chk()(p, room, size, n, file);
}
