/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Scoped cleanup and marked transfer of ownership.
 *
 *     OB_CLEANUP(ob_freep) char *text = malloc(n);   // freed when the scope ends
 *     return ob_steal(text);                         // unless it is returned
 */
#ifndef OB_CLEANUP_H
#define OB_CLEANUP_H

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define OB_CLEANUP(fn) __attribute__((cleanup(fn)))

#define ob_steal(p)                           \
	__extension__({                       \
		__auto_type ob_stolen_ = (p); \
		(p) = NULL;                   \
		ob_stolen_;                   \
	})

static inline void ob_freep(void *p)
{
	int saved = errno;
	free(*(void **)p);
	errno = saved;
}

/* Closes a descriptor when the scope ends; -1 is ignored. */
static inline void ob_closep(int *fd)
{
	if (*fd >= 0) {
		int saved = errno;
		close(*fd);
		errno = saved;
	}
}

#endif
