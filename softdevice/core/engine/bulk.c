/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/engine/bulk.h"

#include <string.h>

#include "softdevice/core/engine/cluster.h"
#include "softdevice/core/engine/fault.h"
#include "softdevice/core/engine/mbarrier.h"
#include "softdevice/core/ops.h"

/* The address in a lane, checked for `bytes`, of which there is at least one. */
static char *checked(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t lane,
	uint32_t slot, bool shared, uint32_t bytes, bool write, uint32_t align)
{
	char *reg = regs + (size_t)slot * OBD_SLOT_BYTES;
	uint64_t base = w->window_base, size = w->window_size, at, offset;

	if (shared) {
		uint32_t number = ((const uint32_t *)(void *)reg)[lane];

		base = obd_cluster_memory(w, &number);
		size = w->shared_bytes;
		at = base + number;
	} else {
		at = ((const uint64_t *)(void *)reg)[lane];
	}
	offset = at - base;
	w->addr[lane] = at;
	w->mem_in = in;
	w->mem_mask = 1u << lane;
	if (offset >= size || size - offset < bytes || at & align)
		obd_fault_access(w, in, 1u << lane, bytes, write, align);
	if (w->memcheck)
		obd_fault_memcheck(w, in, 1u << lane, bytes, write);
	return (char *)(uintptr_t)at;
}

void obd_copy_bulk(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m)
{
	const uint32_t *sizes = (const uint32_t *)(void *)(regs + (size_t)in->b * OBD_SLOT_BYTES);

	for (uint32_t rest = m; rest; rest &= rest - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(rest), bytes = sizes[lane];

		if (bytes % 16)
			obd_fault_raise(w, in, 1u << lane, CUDA_ERROR_MISALIGNED_ADDRESS,
				"the size of a bulk copy is not a multiple of 16 bytes");
		if (bytes) {
			char *to = checked(w, in, regs, lane, in->d, in->e & OBD_BULK_TO_SHARED,
				bytes, true, 15);
			const char *from = checked(w, in, regs, lane, in->a,
				in->e & OBD_BULK_FROM_SHARED, bytes, false, 15);

			memmove(to, from, bytes);
		}
		if (in->e & OBD_BULK_BARRIER)
			obd_mbarrier_complete((uint64_t *)(void *)checked(
						      w, in, regs, lane, in->c, true, 8, true, 7),
				bytes);
	}
}
