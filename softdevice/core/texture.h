/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_texture: what device code knows of a texture or a surface: where its texels are, their
 * format, and how they are read. obd_textures: the table in which kernels find textures by handle.
 *
 * A handle is a number that the program holds: an object's value, or the address of a variable of
 * type .texref or .surfref. Kernels may pass any number, so a handle has a generation, and a place
 * whose handle differs is not found. Kernels read the table without a lock. A texture never changes
 * after it was put into the table; who replaces or removes it waits for the running kernels before
 * it frees the old one.
 *
 * Ownership: the table owns the textures in it. Any thread.
 */
#ifndef OBD_CORE_TEXTURE_H
#define OBD_CORE_TEXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OBD_TEXTURES_MAX       (1u << 20) /* handles of a table */
#define OBD_TEXTURE_LEVELS_MAX 21u

enum obd_texel {
	OBD_TEXEL_U8,
	OBD_TEXEL_S8,
	OBD_TEXEL_U16,
	OBD_TEXEL_S16,
	OBD_TEXEL_U32,
	OBD_TEXEL_S32,
	OBD_TEXEL_F16,
	OBD_TEXEL_F32,
	OBD_TEXEL_10_10_10_2, /* four channels in one 32-bit word */
};

enum obd_texture_kind { OBD_IS_TEXTURE, OBD_IS_SURFACE, OBD_IS_SAMPLER };

enum obd_texture_wrap { /* the numbers of CUaddress_mode */
	OBD_WRAP_REPEAT,
	OBD_WRAP_CLAMP,
	OBD_WRAP_MIRROR,
	OBD_WRAP_BORDER,
};

/* The first byte of a texel is base + z * slice + y * pitch + x * element. */
struct obd_texture_level {
	uint64_t base, pitch, slice;
	uint32_t width, height, depth; /* texels; at least 1 each; depth counts layers, too */
};

struct obd_texture {
	struct obd_texture *next_ended; /* see obd_textures_end */
	const char *refused;            /* why it cannot be accessed; NULL: it can */
	uint64_t bytes; /* from the first texel of the first level to the end of the last */
	enum obd_texture_kind kind;
	enum obd_texel texel;
	uint8_t channels, element; /* element: bytes of a texel */
	uint8_t dims;              /* 1, 2, 3 */
	bool layered, cube;
	bool is_memory; /* 1-D memory, not an array: no texels outside */
	bool as_float;  /* integers are read as numbers in [0, 1] or [-1, 1] */
	bool srgb;
	bool normalized; /* coordinates: 1.0 is the width */
	bool linear, mip_linear;
	bool seamless; /* a cubemap is filtered across the edges of its faces */
	uint8_t wrap[3];
	uint32_t border[4]; /* bits, as a fetch returns them */
	float mip_bias, mip_min, mip_max;
	uint32_t first_layer, n_layers; /* those that can be read; of a cubemap: faces */
	uint32_t n_levels;
	uint32_t n_queried_levels; /* what txq returns: those of the array */
	struct obd_texture_level levels[OBD_TEXTURE_LEVELS_MAX];
};

/* Bytes of a texel. */
uint32_t obd_texel_bytes(enum obd_texel texel, uint32_t channels);
static inline bool obd_texel_is_float(const struct obd_texture *t)
{
	return t->as_float || t->texel == OBD_TEXEL_F16 || t->texel == OBD_TEXEL_F32;
}

struct obd_textures;

/* NULL: out of memory. */
struct obd_textures *obd_textures_new(void);
/* No kernel uses it. */
void obd_textures_free(struct obd_textures *table);
/* Copies the texture into the table. Returns its handle, never 0; 0: out of memory or handles. */
uint64_t obd_textures_add(struct obd_textures *table, const struct obd_texture *texture);
/*
 * Puts a copy of `texture` in the place of the handle; NULL: the handle ends. Returns the texture
 * that was there, for free() once no kernel uses it; NULL: out of memory, and nothing has changed,
 * or there is no such handle.
 */
struct obd_texture *obd_textures_swap(
	struct obd_textures *table, uint64_t handle, const struct obd_texture *texture);
/* Ends the handle. The texture stays in memory: the caller does not know whether kernels use it. */
void obd_textures_end(struct obd_textures *table, uint64_t handle);
/*
 * The textures whose handles have so ended until now, for obd_textures_drop once no kernel uses
 * them.
 */
struct obd_texture *obd_textures_ended(struct obd_textures *table);
void obd_textures_drop(struct obd_texture *ended);
/* NULL: no such handle. `table` may be NULL. */
const struct obd_texture *obd_textures_find(const struct obd_textures *table, uint64_t handle);

#endif
