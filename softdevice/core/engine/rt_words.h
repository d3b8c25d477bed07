/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Arguments and results of the device runtime: words in the caller's registers. */
#ifndef OBD_CORE_RT_WORDS_H
#define OBD_CORE_RT_WORDS_H

#include "softdevice/core/engine/exec.h"

static inline uint32_t obd_rt_word(const struct obd_warp *w, const struct obd_insn *in,
	const char *regs, uint32_t index, uint32_t lane)
{
	const uint16_t *list = w->cur->frame->func->call_ops + in->u.imm;

	if (index >= list[0])
		return 0;
	return ((const uint32_t *)(const void *)(regs +
		(size_t)list[2 + index] * OBD_SLOT_BYTES))[lane];
}

static inline uint64_t obd_rt_wide(const struct obd_warp *w, const struct obd_insn *in,
	const char *regs, uint32_t index, uint32_t lane)
{
	return obd_rt_word(w, in, regs, index, lane) |
		(uint64_t)obd_rt_word(w, in, regs, index + 1, lane) << 32;
}

static inline void obd_rt_result(const struct obd_warp *w, const struct obd_insn *in, char *regs,
	uint32_t index, uint32_t lane, uint32_t v)
{
	const uint16_t *list = w->cur->frame->func->call_ops + in->u.imm;

	if (index < list[1])
		((uint32_t *)(void *)(regs +
			(size_t)list[2 + list[0] + index] * OBD_SLOT_BYTES))[lane] = v;
}

#endif
