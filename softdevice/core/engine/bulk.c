/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/engine/bulk.h"

#include <string.h>

#include "softdevice/core/engine/atomics.h"
#include "softdevice/core/engine/cluster.h"
#include "softdevice/core/engine/fault.h"
#include "softdevice/core/engine/mbarrier.h"
#include "softdevice/core/ops.h"

static char *checked(struct obd_warp *w, const struct obd_insn *in, uint32_t lane, uint64_t base,
	uint64_t size, uint64_t at, uint32_t bytes, bool write, uint32_t align)
{
	uint64_t offset = at - base;

	w->addr[lane] = at;
	w->mem_in = in;
	w->mem_mask = 1u << lane;
	if (offset >= size || size - offset < bytes || at & align)
		obd_fault_access(w, in, 1u << lane, bytes, write, align);
	if (w->memcheck)
		obd_fault_memcheck(w, in, 1u << lane, bytes, write);
	return (char *)(uintptr_t)at;
}

char *obd_bulk_global(struct obd_warp *w, const struct obd_insn *in, uint32_t lane, uint64_t at,
	uint32_t bytes, bool write, uint32_t align)
{
	return checked(w, in, lane, w->window_base, w->window_size, at, bytes, write, align);
}

char *obd_bulk_shared(struct obd_warp *w, const struct obd_insn *in, uint32_t lane, uint32_t number,
	uint32_t bytes, bool write, uint32_t align)
{
	uint64_t base = obd_cluster_memory(w, &number);

	return checked(w, in, lane, base, w->shared_bytes, base + number, bytes, write, align);
}

/* The address in a lane, checked for `bytes`, of which there is at least one. */
static char *place(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t lane,
	uint32_t slot, bool shared, uint32_t bytes, bool write)
{
	const char *reg = regs + (size_t)slot * OBD_SLOT_BYTES;

	if (shared)
		return obd_bulk_shared(
			w, in, lane, ((const uint32_t *)(const void *)reg)[lane], bytes, write, 15);
	return obd_bulk_global(
		w, in, lane, ((const uint64_t *)(const void *)reg)[lane], bytes, write, 15);
}

void obd_bulk_reduce(struct obd_warp *w, uint32_t code, char *to, const char *from, uint32_t bytes)
{
	_Alignas(64) char values[2 * OBD_SLOT_BYTES];
	uint32_t size = obd_atom_bytes(code >> 4 & 31), lane = size == 8 ? 8 : 4;
	/* a reduction of up to 32 lanes, of which slot 0 has the values */
	struct obd_insn red = { .c = OBD_NO_SLOT, .d = OBD_NO_SLOT, .e = (uint16_t)code };

	while (bytes) {
		uint32_t n = bytes / size < OBD_LANES ? bytes / size : OBD_LANES;

		memset(values, 0, sizeof(values));
		for (uint32_t i = 0; i < n; i++, to += size, from += size) {
			memcpy(values + i * lane, from, size);
			w->addr[i] = (uint64_t)(uintptr_t)to;
		}
		obd_atomic(w, &red, values, n == OBD_LANES ? OBD_FULL_MASK : (1u << n) - 1);
		bytes -= n * size;
	}
}

void obd_bulk_complete(struct obd_warp *w, const struct obd_insn *in, uint32_t lane,
	uint32_t barrier, uint32_t bytes)
{
	obd_mbarrier_complete(
		(uint64_t *)(void *)obd_bulk_shared(w, in, lane, barrier, 8, true, 7), bytes);
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
			char *to = place(
				w, in, regs, lane, in->d, in->e & OBD_BULK_TO_SHARED, bytes, true);
			const char *from = place(w, in, regs, lane, in->a,
				in->e & OBD_BULK_FROM_SHARED, bytes, false);

			if (in->e & OBD_BULK_REDUCE)
				obd_bulk_reduce(w, in->u.imm, to, from, bytes);
			else
				memmove(to, from, bytes);
		}
		if (in->e & OBD_BULK_BARRIER)
			obd_bulk_complete(w, in, lane,
				((const uint32_t *)(const void *)(regs +
					(size_t)in->c * OBD_SLOT_BYTES))[lane],
				bytes);
	}
}
