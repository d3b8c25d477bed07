/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Loads, stores and reductions of surfaces, for one SIMD lane. */
#ifndef OBD_CORE_SURFACE_H
#define OBD_CORE_SURFACE_H

#include "softdevice/core/engine/texture_run.h"

/*
 * Runs suld, sust or sured. A place outside the surface is a fault, is moved to the nearest one
 * inside, or reads as 0 and is not written, as the instruction says.
 */
void obd_surface_access(const struct obd_tex_run *r, const struct obd_texture *t, uint32_t lane);

#endif
