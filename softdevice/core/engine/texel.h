/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Texels as numbers: the formats of textures and surfaces. Pure functions. */
#ifndef OBD_CORE_TEXEL_H
#define OBD_CORE_TEXEL_H

#include "softdevice/core/texture.h"

/*
 * Reads the channels of a texel as a fetch returns them: bits of a float, or an integer extended to
 * 32 bits. Writes t->channels words; the texel need not be aligned.
 */
typedef void (*obd_texel_reader)(const void *texel, uint32_t *ret);

obd_texel_reader obd_texel_reader_of(const struct obd_texture *t);
/* Channels that the format does not have: 0, and 1 for the last of four. */
void obd_texel_complete(const struct obd_texture *t, uint32_t *channels);
/*
 * sust.p: converts `n` words to the format and writes the texel. Words are floats if the format is
 * a float, otherwise integers, which are limited to the range of the format.
 */
void obd_texel_write(const struct obd_texture *t, void *texel, const uint32_t *words, uint32_t n);

#endif
