/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/compile/lower_bulk.h"

#include <string.h>

#include "softdevice/core/compile/address.h"
#include "softdevice/core/compile/value.h"

#define N OBD_NONE

static bool has_word(const struct obd_stmt *s, const char *name)
{
	for (uint32_t i = 0; i < s->n_words; i++)
		if (s->words[i].size == strlen(name) &&
			memcmp(s->words[i].text, name, s->words[i].size) == 0)
			return true;
	return false;
}

/* An address of the space, with its offset added. */
static uint32_t place(struct obd_builder *b, const struct obd_stmt *s, uint32_t i, uint32_t space)
{
	bool shared = space == OBD_KIND_SHARED;
	uint32_t kind = space, offset, base = obd_address(b, &s->opd[i], &kind, &offset), sum;

	if (kind != space)
		obd_invalid(b, s, "an address is not in the space that the instruction states");
	if (!offset)
		return base;
	sum = obd_vreg_new(b, shared ? OBD_CLASS_32 : OBD_CLASS_64);
	obd_emit(b, shared ? OBD_OP_add_u32 : OBD_OP_add_u64, sum, base,
		shared ? obd_const32(b, offset)
		       : obd_const_new(b, OBD_CLASS_64, (uint64_t)(int64_t)(int32_t)offset, NULL),
		N);
	return sum;
}

/*
 * The completion mechanism tells the direction: with a bulk group the destination is global memory,
 * with an mbarrier it is shared memory.
 */
void obd_lower_bulk(struct obd_builder *b, const struct obd_stmt *s)
{
	bool group = has_word(s, "bulk_group"), barrier = obd_q(s, OBD_Q_unsupported);
	uint32_t to = group ? OBD_KIND_GLOBAL : OBD_KIND_SHARED,
		 from = group || !obd_q(s, OBD_Q_global) ? OBD_KIND_SHARED : OBD_KIND_GLOBAL;

	if (obd_q(s, OBD_Q_commit_group) || obd_q(s, OBD_Q_wait_group))
		return;
	if (has_word(s, "reduce") || has_word(s, "multicast::cluster") || has_word(s, "cp_mask"))
		obd_unsupported(b, s, "this form of a bulk copy");
	if (has_word(s, "prefetch"))
		return;
	if (group == barrier)
		obd_unsupported(b, s, "this form of a bulk copy");
	/* a cache policy may follow */
	obd_operand_count(b, s, barrier ? 4 : 3, barrier ? 5 : 4);
	uint32_t d = place(b, s, 0, to), a = place(b, s, 1, from),
		 bytes = obd_src(b, s, 2, OBD_T_U32),
		 bar = barrier ? place(b, s, 3, OBD_KIND_SHARED) : N;
	struct obd_lin *l = obd_emit(b, OBD_OP_copy_bulk, N, a, bytes, bar);

	l->d = d;
	l->flags |= OBD_USE_D;
	l->e_raw = (uint16_t)((to == OBD_KIND_SHARED ? OBD_BULK_TO_SHARED : 0) |
		(from == OBD_KIND_SHARED ? OBD_BULK_FROM_SHARED : 0) |
		(barrier ? OBD_BULK_BARRIER : 0));
}
