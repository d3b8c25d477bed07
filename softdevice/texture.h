/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Texture and surface objects and references, as the front end's backend table has them. They are
 * put into the context's table of textures (core/texture.h), where kernels find them.
 *
 * Whatever a kernel may still read is freed only when the context's work is complete: objects that
 * are destroyed, and what a reference was bound to before. The same wait comes before the change,
 * so that kernels that were launched before it do not see it. Any thread.
 */
#ifndef OBD_TEXTURE_H
#define OBD_TEXTURE_H

#include "front/texref.h"
#include "front/texture.h"

CUresult obd_texture_create(struct obf_texture *texture);
CUresult obd_texture_destroy(struct obf_texture *texture, bool ctx_ended);
CUresult obd_texref_set(const struct obf_texref *ref, const struct obf_texref_state *next,
	unsigned setting, unsigned dimension);

#endif
