/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The most frequent fetch: two float coordinates, one level, no layer. It gives the bits of
 * obd_sample (sample.h), in less time. Pure functions.
 */
#ifndef OBD_CORE_PLANE_H
#define OBD_CORE_PLANE_H

#include "softdevice/core/engine/texel.h"

/* Whether the instruction reads this texture so; form: texture_form.h. */
bool obd_plane_fits(const struct obd_texture *t, uint32_t form);
void obd_plane_sample(
	const struct obd_texture *t, obd_texel_reader read, float x, float y, uint32_t ret[4]);

#endif
