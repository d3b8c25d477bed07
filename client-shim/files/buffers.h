/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What the files of liboutboard-buffers.so have in common (buffers.c): the test of a buffer, the
 * functions that the program would call without the library, and the buffer that a call gets instead.
 */
#ifndef OUTBOARD_BUFFERS_H
#define OUTBOARD_BUFFERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#define EXPORT      __attribute__((visibility("default")))
#define HIDDEN      __attribute__((visibility("hidden")))
#define UNLIKELY(x) __builtin_expect((x), 0)

#define BUFFERS_PIECE ((size_t)4 << 20)    /* bytes of a call that can be made in pieces */
#define BUFFERS_MOST  ((size_t)0x7ffff000) /* bytes; the system transfers no more in one call */

HIDDEN extern _Atomic size_t buffers_marks; /* of outboard_buffers_mark */

/* Whether the buffer begins or ends in marked pages. No lock. */
HIDDEN bool buffers_within(const void *p, size_t size);

/* The test of each call. */
static inline bool concerns(const void *p, size_t size)
{
	return UNLIKELY(atomic_load_explicit(&buffers_marks, memory_order_relaxed) > 0) &&
		buffers_within(p, size);
}

/* The next function of this name, found once; one that fails with ENOSYS if there is none. */
HIDDEN void *buffers_next(_Atomic uintptr_t *next, const char *name);

/*
 * Declares NAME, and defines next_NAME(), which returns the function that it replaces. It is found when
 * the library is loaded, because dlsym must not be called in a signal handler.
 */
#define NEXT(result, name, parameters)                             \
	typedef result type_##name parameters;                     \
	static inline type_##name *next_##name(void)               \
	{                                                          \
		static _Atomic uintptr_t next;                     \
		void *found = buffers_next(&next, #name);          \
		type_##name *function;                             \
                                                                   \
		memcpy(&function, &found, sizeof function);        \
		return function;                                   \
	}                                                          \
	__attribute__((constructor)) static void find_##name(void) \
	{                                                          \
		next_##name();                                     \
	}                                                          \
	EXPORT result name parameters;

/* The buffer of a call, and what must be undone if the thread is cancelled in the call. */
struct bounce {
	void *bytes;
	size_t size;
	FILE *locked; /* or NULL */
};

/* Pages are taken when they are first used. False: no memory, and nothing is locked. */
HIDDEN bool bounce_make(struct bounce *ret, size_t size, FILE *locked);
/* For pthread_cleanup_push. */
HIDDEN void bounce_free(void *bounce);

#endif
