/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Instructions of textures and surfaces: finds the textures of the lanes' handles and runs the
 * instruction in each lane. A handle that is not known, or of the other kind, is a fault of the
 * kernel.
 */
#ifndef OBD_CORE_ENGINE_TEXTURE_H
#define OBD_CORE_ENGINE_TEXTURE_H

#include "softdevice/core/engine/exec.h"
#include "softdevice/core/texture.h"
#include "softdevice/core/texture_form.h"

void obd_texture_run(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);

/* ---- for surface.c ---- */

/* One instruction while it runs. */
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
