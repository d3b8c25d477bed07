/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* One instruction of textures or surfaces while a warp executes it, and its operands. */
#ifndef OBD_CORE_TEXTURE_RUN_H
#define OBD_CORE_TEXTURE_RUN_H

#include "softdevice/core/engine/exec.h"
#include "softdevice/core/texture.h"
#include "softdevice/core/texture_form.h"

struct obd_tex_run {
	struct obd_warp *w;
	const struct obd_insn *in;
	char *regs;
	uint32_t form;
	const uint16_t *ins, *outs; /* slots */
	uint32_t n_in, n_out;
};

static inline uint32_t *obd_tex_word(const struct obd_tex_run *r, uint32_t slot, uint32_t lane)
{
	return (uint32_t *)(void *)(r->regs + (size_t)slot * OBD_SLOT_BYTES) + lane;
}

static inline uint64_t *obd_tex_wide(const struct obd_tex_run *r, uint32_t slot, uint32_t lane)
{
	return (uint64_t *)(void *)(r->regs + (size_t)slot * OBD_SLOT_BYTES) + lane;
}

#endif
