/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The packed form of an instruction of textures and surfaces: written by compile/lower_texture.c,
 * read by engine/texture.c and engine/surface.c. An operation `texture` has a form in d (upper
 * half) and a (lower half), an argument in e, and in imm a list of operands like that of a call:
 *
 *   in   handle (64 bits), [layer], coordinates, [level of detail | two gradients], [offsets],
 *        [values that are written]
 *   out  results
 */
#ifndef OBD_CORE_TEXTURE_FORM_H
#define OBD_CORE_TEXTURE_FORM_H

#include <stdint.h>

enum obd_tex_kind {
	OBD_TEX_FETCH,
	OBD_TEX_GATHER, /* tld4; e: component */
	OBD_TEX_QUERY,  /* txq and suq; e: enum obd_tex_query */
	OBD_TEX_LOAD,
	OBD_TEX_STORE,
	OBD_TEX_REDUCE, /* e: OBD_TEX_REDUCTION */
	OBD_TEX_TYPE,   /* istypep; e: 0 texture, 1 surface, 2 sampler */
};
enum obd_tex_lod { OBD_LOD_NONE, OBD_LOD_LEVEL, OBD_LOD_GRADIENTS };
enum obd_tex_result { OBD_TEX_B32, OBD_TEX_F16, OBD_TEX_F16X2 };
enum obd_tex_clamp { OBD_CLAMP_TRAP, OBD_CLAMP_CLAMP, OBD_CLAMP_ZERO };

#define OBD_TEX_KIND(form)   ((form)&7u)
#define OBD_TEX_DIMS(form)   ((form) >> 3 & 3u)
#define OBD_TEX_ARRAY        (1u << 5)
#define OBD_TEX_CUBE         (1u << 6)
#define OBD_TEX_INTEGER      (1u << 7) /* integer coordinates */
#define OBD_TEX_LOD(form)    ((form) >> 8 & 3u)
#define OBD_TEX_RESULT(form) ((form) >> 10 & 3u)
#define OBD_TEX_OFFSET       (1u << 12)
#define OBD_TEX_CLAMP(form)  ((form) >> 13 & 3u)
#define OBD_TEX_FORMATTED    (1u << 15) /* sust.p, sured.p: x counts texels, not bytes */
#define OBD_TEX_BYTES(form)  (1u << ((form) >> 16 & 3u)) /* of one value */
#define OBD_TEX_VALUES(form) (1u << ((form) >> 18 & 3u)) /* 1, 2 or 4 */
#define OBD_TEX_SURFACE      (1u << 20)

#define OBD_TEX_FORM(kind, dims)    ((uint32_t)(kind) | (uint32_t)(dims) << 3)
#define OBD_TEX_FORM_LOD(lod)       ((uint32_t)(lod) << 8)
#define OBD_TEX_FORM_RESULT(result) ((uint32_t)(result) << 10)
#define OBD_TEX_FORM_CLAMP(clamp)   ((uint32_t)(clamp) << 13)
#define OBD_TEX_FORM_BYTES(bytes)   ((uint32_t)__builtin_ctz(bytes) << 16)
#define OBD_TEX_FORM_VALUES(values) ((uint32_t)__builtin_ctz(values) << 18)

/* operation: enum obd_atom_op */
#define OBD_TEX_REDUCTION(operation, is_signed) ((uint16_t)((operation) | (is_signed) << 4))

enum obd_tex_query {
	OBD_QUERY_WIDTH,
	OBD_QUERY_HEIGHT,
	OBD_QUERY_DEPTH,
	OBD_QUERY_DATA_TYPE,
	OBD_QUERY_ORDER,
	OBD_QUERY_NORMALIZED,
	OBD_QUERY_UNNORMALIZED,
	OBD_QUERY_FILTER,
	OBD_QUERY_WRAP_0,
	OBD_QUERY_WRAP_1,
	OBD_QUERY_WRAP_2,
	OBD_QUERY_LAYERS,
	OBD_QUERY_LEVELS,
	OBD_QUERY_SAMPLES,
};

/* Coordinates of a texel or a direction, without the layer. */
static inline uint32_t obd_tex_coordinates(uint32_t form)
{
	return form & OBD_TEX_CUBE ? 3 : OBD_TEX_DIMS(form);
}

#endif
