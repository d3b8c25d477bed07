/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Memory of the registry. Its functions complete every operation by a callback, which must be
 * possible without new memory. All sizes have named limits, so a failure means that the machine has no
 * memory left: the balancer then ends. Nothing is lost: the registry is consistent after each
 * transaction, and no session depends on a balancer. Any thread.
 */
#ifndef OBL_ALLOC_H
#define OBL_ALLOC_H

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static inline void *obl_alloc_check(void *p)
{
	if (!p) {
		ob_error(
			"out of memory: the balancer ends; sessions go on, and the balancer can be "
			"started again");
		abort();
	}
	return p;
}

/* Zeroed memory, released by free. */
static inline void *obl_alloc(size_t n, size_t size)
{
	return obl_alloc_check(calloc(n ? n : 1, size));
}

static inline void *obl_realloc(void *p, size_t n, size_t size)
{
	return obl_alloc_check(reallocarray(p, n ? n : 1, size));
}

static inline char *obl_copy_text(const char *text)
{
	return obl_alloc_check(strdup(text));
}

#endif
