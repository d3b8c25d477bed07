/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Reading a texture at coordinates: addressing, filtering, levels of detail, cubemaps. Pure
 * functions of the texture and its memory; compiled once, so that all instruction sets give the
 * same bits. Source: appendix "Texture Fetching" of the CUDA C++ Programming Guide.
 *
 * Weights have 8 fractional bits, to which coordinates are rounded. The guide does not say how the
 * hardware rounds, nor how precisely it adds; here the sum is computed in double precision and
 * rounded once.
 */
#ifndef OBD_CORE_SAMPLE_H
#define OBD_CORE_SAMPLE_H

#include "softdevice/core/engine/texel.h"

/* What one SIMD lane asks for. */
struct obd_sample {
	uint32_t form;    /* texture_form.h */
	float at[3];      /* coordinates, or the direction into a cubemap */
	int32_t texel[3]; /* instead, if the form has OBD_TEX_INTEGER */
	int32_t layer;
	float lod;
	int32_t lod_texel; /* the level, with integer coordinates */
	float gradient[2][3];
	int32_t offset[3];
};

/* The four channels, as bits. */
void obd_sample(const struct obd_texture *t, obd_texel_reader read, const struct obd_sample *s,
	uint32_t ret[4]);
/* tld4: one channel of the four texels that a linear filter would use. */
void obd_sample_gather(const struct obd_texture *t, obd_texel_reader read,
	const struct obd_sample *s, uint32_t component, uint32_t ret[4]);

#endif
