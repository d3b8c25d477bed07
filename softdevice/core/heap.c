/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/heap.h"

#include <stdlib.h>

/* In front of each block; keeps its alignment. */
struct header {
	size_t size;    /* its own bytes included */
	size_t counted; /* 1: charged, so discharged when it is freed */
};
_Static_assert(sizeof(struct header) == 16, "blocks are aligned to 16");

static obd_heap_charge *heap_charge;
static obd_heap_discharge *heap_discharge;

void obd_heap_count(obd_heap_charge *charge, obd_heap_discharge *discharge)
{
	heap_charge = charge;
	heap_discharge = discharge;
}

void *obd_heap_alloc(size_t size)
{
	struct header *p;

	if (size > SIZE_MAX / 2)
		return NULL;
	size += sizeof(*p);
	if (heap_charge && !heap_charge(size))
		return NULL;
	p = calloc(1, size);
	if (!p) {
		if (heap_charge)
			heap_discharge(size);
		return NULL;
	}
	*p = (struct header){ size, heap_charge != NULL };
	return p + 1;
}

void obd_heap_free(void *p)
{
	struct header *header;

	if (!p)
		return;
	header = (struct header *)p - 1;
	if (header->counted)
		heap_discharge(header->size);
	free(header);
}
