/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_texref: a texture or a surface reference: a variable of a module that kernels read textures
 * through, or a texture reference of cuTexRefCreate, which no kernel can use. It holds what the
 * program has set; a backend with textures passes each change on. References of a module end with
 * the module, others with their context. The front end owns them (object.h); any thread.
 */
#ifndef OBF_TEXREF_H
#define OBF_TEXREF_H

#include <stdbool.h>
#include <stdint.h>

#include "front/front.h"
#include "front/object.h"

#define OBF_TEXREF_MAX        (1u << 18) /* live references of a process */
#define OBF_TEXREF_DIMENSIONS 3

struct obf_mod;
struct obf_module;

/* What a call changes. The numbers are those of the wire. */
enum obf_texref_setting {
	OBF_TEXREF_FORMAT = 1,
	OBF_TEXREF_ADDRESS_MODE = 2,
	OBF_TEXREF_FILTER = 3,
	OBF_TEXREF_MIP_FILTER = 4,
	OBF_TEXREF_MIP_BIAS = 5,
	OBF_TEXREF_MIP_CLAMP = 6,
	OBF_TEXREF_ANISOTROPY = 7,
	OBF_TEXREF_BORDER = 8,
	OBF_TEXREF_FLAGS = 9,
	OBF_TEXREF_BINDING, /* `bound`, and the format of a bound array or of pitched memory */
};

/* What a reference is bound to. */
struct obf_texref_binding {
	bool is_bound;
	CUresourcetype type;
	uint64_t array; /* id of an array or a mipmapped array */
	/* linear and pitched memory: where it begins, and how far behind an aligned address */
	uint64_t addr, offset;
	size_t size;                 /* bytes of linear memory */
	size_t width, height, pitch; /* pitched memory: elements, rows, bytes */
};

struct obf_texref_state {
	CUarray_format format;
	unsigned channels;
	CUaddress_mode address[OBF_TEXREF_DIMENSIONS];
	CUfilter_mode filter, mip_filter;
	float mip_bias, mip_min, mip_max;
	unsigned anisotropy, flags;
	float border[4];
	struct obf_texref_binding bound;
};

struct obf_texref {
	union {
		struct obf_object object;
		struct {
			struct obf_ctx *ctx; /* NULL: unused */
			uint64_t handle;     /* the id */
		};
	};
	bool is_surface;
	const struct obf_mod *mod; /* NULL: made by cuTexRefCreate */
	const char *name;          /* in the module */
	struct obf_texref_state state;
};

/*
 * The checks of every call of a reference. CUDA_ERROR_INVALID_VALUE: there is none, it is of the
 * other kind, or it is of another context.
 */
CUresult obf_texref_enter(
	uint64_t handle, bool is_surface, struct obf_ctx **ret_ctx, struct obf_texref **ret);
/* Copies the state. */
void obf_texref_read(struct obf_texref *ref, struct obf_texref_state *ret);
/*
 * A change: begin copies the state, the caller changes the copy, and end passes it to the backend
 * and stores it, or with another result than CUDA_SUCCESS drops it and returns that result. The
 * changes of all references exclude one another.
 */
void obf_texref_change_begin(struct obf_texref *ref, struct obf_texref_state *ret);
CUresult obf_texref_change_end(struct obf_texref *ref, const struct obf_texref_state *next,
	enum obf_texref_setting setting, unsigned dimension, CUresult result);

/* The backend has unloaded the module: ends its references. */
void obf_module_texrefs_end(struct obf_module *module);
/* The context has ended in the backend, and its modules before: ends the other references. */
void obf_texrefs_end(const struct obf_ctx *ctx);

#endif
