/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A library to preload into a program that uses a real driver. It logs which slots of the driver's
 * private tables the program's libraries call, with arguments and result of the first call.
 *
 *     OUTBOARD_DRIVER_LOG=FILE LD_PRELOAD=libdriver-log.so PROGRAM
 *
 * dlsym is wrapped, so that the program gets our cuGetExportTable. That function returns copies of
 * the tables with a counting function in each slot. The two tables whose addresses the runtime's
 * self-test hashes are not replaced. At the end of the process one line per called slot is appended
 * to FILE (or printed to stderr).
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cuda_types.h"

#define EXPORT     __attribute__((visibility("default")))
#define SLOTS      512u /* in all tables together; further slots are not counted */
#define WORDS_MAX  256u
#define WORDS_BARE 40u /* copied from a table without a size */
#define TABLES     16u
/* more than a function has: reading them is harmless, as they are in registers or on the stack */
#define ARGS       10u

typedef uint64_t (*slot_fn)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
	uint64_t, uint64_t, uint64_t);

static struct slot {
	slot_fn real;
	unsigned table, number;
	atomic_ulong calls;          /* relaxed: read at the end */
	uint64_t args[ARGS], answer; /* of the first call */
} slots[SLOTS];

static struct {
	CUuuid id;
	uintptr_t words[WORDS_MAX + 1];
} tables[TABLES];

static unsigned n_slots, n_tables;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for both counts and new entries */

static uint64_t called(unsigned i, const uint64_t a[ARGS])
{
	struct slot *s = &slots[i];
	bool first = atomic_fetch_add_explicit(&s->calls, 1, memory_order_relaxed) == 0;
	uint64_t answer;

	if (first)
		memcpy(s->args, a, sizeof s->args);
	answer = s->real(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9]);
	if (first)
		s->answer = answer;
	return answer;
}

/* One function for each entry of `slots`; it passes the entry's number to called(). */
#define FUNCTION(n)                                                                          \
	static uint64_t slot_##n(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, \
		uint64_t f, uint64_t g, uint64_t h, uint64_t i, uint64_t j)                  \
	{                                                                                    \
		return called(0##n, (const uint64_t[ARGS]){ a, b, c, d, e, f, g, h, i, j }); \
	}
#define NAME(n)     slot_##n,
#define EIGHT(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7)
#define MANY(X, n)     \
	EIGHT(X, n##0) \
	EIGHT(X, n##1) \
	EIGHT(X, n##2) EIGHT(X, n##3) EIGHT(X, n##4) EIGHT(X, n##5) EIGHT(X, n##6) EIGHT(X, n##7)
#define ALL(X) \
	MANY(X, 0) MANY(X, 1) MANY(X, 2) MANY(X, 3) MANY(X, 4) MANY(X, 5) MANY(X, 6) MANY(X, 7)
ALL(FUNCTION)
static const slot_fn functions[] = { ALL(NAME) };
_Static_assert(sizeof functions / sizeof functions[0] == SLOTS, "a function a slot");

static int in_code(struct dl_phdr_info *info, size_t size, void *word)
{
	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && p->p_flags & PF_X &&
			(uintptr_t)word - info->dlpi_addr - p->p_vaddr < p->p_memsz)
			return 1;
	}
	return 0;
}

/* Returns the copy of a table, or the table itself if there is no room. */
static const void *copy_of(const CUuuid *id, const uintptr_t *words)
{
	bool sized = words[0] % sizeof *words == 0 && words[0] / sizeof *words <= WORDS_MAX;
	unsigned t, n = sized ? (unsigned)(words[0] / sizeof *words) : WORDS_BARE;

	for (t = 0; t < n_tables; t++)
		if (memcmp(&tables[t].id, id, sizeof *id) == 0)
			return tables[t].words;
	if (n_tables == TABLES)
		return words;
	tables[n_tables++].id = *id;
	for (unsigned w = 0; w < n; w++) {
		tables[t].words[w] = words[w];
		if (!sized && !words[w])
			break; /* the table of context-local storage ends with 0 */
		if (n_slots < SLOTS && dl_iterate_phdr(in_code, (void *)words[w])) {
			slots[n_slots] =
				(struct slot){ .real = (slot_fn)words[w], .table = t, .number = w };
			tables[t].words[w] = (uintptr_t)functions[n_slots++];
		}
	}
	return tables[t].words;
}

static CUresult (*real_table)(const void **, const CUuuid *);
static CUresult (*real_proc_v1)(const char *, void **, int, cuuint64_t);
static CUresult (*real_proc_v2)(const char *, void **, int, cuuint64_t, void *);

static CUresult table_get(const void **ret, const CUuuid *id)
{
	/*
	 * Not copied: the runtime's interface and its self-test, whose addresses are hashed, and
	 * the table that is requested first, which contains tables.
	 */
	static const unsigned char kept[][4] = { { 0x6b, 0xd5, 0xfb, 0x6c },
		{ 0xd4, 0x08, 0x20, 0x55 }, { 0xf8, 0xcf, 0xf9, 0x51 } };
	CUresult result = real_table(ret, id);

	if (result || !ret || !*ret)
		return result;
	for (unsigned i = 0; i < sizeof kept / sizeof kept[0]; i++)
		if (memcmp(id, kept[i], sizeof kept[i]) == 0)
			return result;
	pthread_mutex_lock(&lock);
	*ret = copy_of(id, *ret);
	pthread_mutex_unlock(&lock);
	return result;
}

static void *ours(const char *name, void *found);

static CUresult proc_v1(const char *name, void **ret, int version, cuuint64_t flags)
{
	CUresult result = real_proc_v1(name, ret, version, flags);

	if (!result && ret && *ret)
		*ret = ours(name, *ret);
	return result;
}

static CUresult proc_v2(const char *name, void **ret, int version, cuuint64_t flags, void *status)
{
	CUresult result = real_proc_v2(name, ret, version, flags, status);

	if (!result && ret && *ret)
		*ret = strcmp(name, "cuGetProcAddress") == 0 ? ours("cuGetProcAddress_v2", *ret)
							     : ours(name, *ret);
	return result;
}

static void *ours(const char *name, void *found)
{
	if (strcmp(name, "cuGetExportTable") == 0) {
		real_table = (__typeof__(real_table))found;
		return (void *)table_get;
	}
	if (strcmp(name, "cuGetProcAddress") == 0) {
		real_proc_v1 = (__typeof__(real_proc_v1))found;
		return (void *)proc_v1;
	}
	if (strcmp(name, "cuGetProcAddress_v2") == 0) {
		real_proc_v2 = (__typeof__(real_proc_v2))found;
		return (void *)proc_v2;
	}
	return found;
}

EXPORT void *dlsym(void *restrict handle, const char *restrict name)
{
	static void *(*_Atomic real)(void *, const char *);
	void *(*next)(void *, const char *) = real;
	void *found;

	if (!next) {
		next = (__typeof__(next))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
		if (!next)
			next = (__typeof__(next))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
		real = next;
	}
	found = next(handle, name);
	return found && strncmp(name, "cuGet", 5) == 0 ? ours(name, found) : found;
}

__attribute__((destructor)) static void tell(void)
{
	const char *path = getenv("OUTBOARD_DRIVER_LOG");
	FILE *out = path ? fopen(path, "a") : stderr;

	for (unsigned i = 0; out && i < n_slots; i++) {
		struct slot *s = &slots[i];
		unsigned long calls = atomic_load_explicit(&s->calls, memory_order_relaxed);

		if (!calls)
			continue;
		for (unsigned b = 0; b < 4; b++)
			fprintf(out, "%02x", (unsigned char)tables[s->table].id.bytes[b]);
		fprintf(out, "[%u]: %lu calls, the first", s->number, calls);
		for (unsigned a = 0; a < ARGS - 2; a++)
			fprintf(out, " %#lx", (unsigned long)s->args[a]);
		fprintf(out, " returned %#lx\n", (unsigned long)s->answer);
	}
	if (path && out)
		fclose(out);
}
