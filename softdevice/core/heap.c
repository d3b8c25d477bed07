/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/heap.h"

#include <stdlib.h>

/* Precedes each block. Its size preserves the block's alignment. */
struct header {
	size_t size;    /* bytes, including this header */
	size_t counted; /* 1: was charged and is discharged when freed */
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
