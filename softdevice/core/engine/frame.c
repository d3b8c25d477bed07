/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/engine/frame.h"

#include <stdlib.h>
#include <string.h>

static void fill_consts(struct obd_frame *fr, const struct obd_func *f)
{
	for (uint32_t i = 0; i < f->n_consts; i++) {
		char *reg = fr->regs + (size_t)f->consts[i].slot * OBD_SLOT_BYTES;

		for (uint32_t l = 0; l < OBD_LANES; l++)
			if (f->consts[i].wide)
				((uint64_t *)(void *)reg)[l] = f->consts[i].value;
			else
				((uint32_t *)(void *)reg)[l] = (uint32_t)f->consts[i].value;
	}
}

struct obd_frame *obd_frame_get(struct obd_warp *w, const struct obd_func *f)
{
	struct obd_worker *wk = w->worker;
	struct obd_frame *fr = wk->free_frames[f->index];

	if (fr) {
		wk->free_frames[f->index] = fr->next_free;
	} else {
		size_t head = (sizeof(*fr) + OBD_SLOT_BYTES - 1) / OBD_SLOT_BYTES * OBD_SLOT_BYTES;
		size_t size = head + ((size_t)f->n_slots + 1) * OBD_SLOT_BYTES;

		/* behind the registers: 8 bytes for each slot (native/cache.c) */
		size += ((size_t)f->n_slots * 8 + OBD_SLOT_BYTES - 1) / OBD_SLOT_BYTES *
			OBD_SLOT_BYTES;

		fr = aligned_alloc(OBD_SLOT_BYTES, size);
		if (!fr)
			return NULL;
		memset(fr, 0, size);
		fr->func = f;
		fr->fp = (uint32_t *)(void *)((char *)fr + head);
		fr->regs = (char *)fr + head + OBD_SLOT_BYTES;
		fill_consts(fr, f);
		if (f->n_prologue)
			obd_isa_current->prepare(w, f, fr->regs);
		fr->next_all = wk->all_frames;
		wk->all_frames = fr;
	}
	fr->parent = NULL;
	fr->refs = 0;
	fr->depth = 0;
	return fr;
}

void obd_frame_put(struct obd_worker *wk, struct obd_frame *f)
{
	f->next_free = wk->free_frames[f->func->index];
	wk->free_frames[f->func->index] = f;
}

void obd_frame_free_all(struct obd_worker *wk)
{
	for (struct obd_frame *f = wk->all_frames, *next; f; f = next) {
		next = f->next_all;
		free(f);
	}
}
