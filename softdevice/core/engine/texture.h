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

void obd_texture_run(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);

#endif
