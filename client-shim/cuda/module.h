/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_module: sends code to the server. The front end has selected the image that fits the device.
 * The image is identified by its SHA-256: a small one is sent at once, a large one only if the
 * server does not have it. The client assigns the ids of functions. For struct obf_backend; any
 * thread (the front end serialises calls per module).
 */
#ifndef OBC_MODULE_H
#define OBC_MODULE_H

#include "front/front.h"

CUresult obc_mod_load(struct obf_mod *mod, const struct obf_image_ref *image);
void obc_mod_unload(struct obf_mod *mod);
CUresult obc_func_get(struct obf_func *func);
CUresult obc_func_load(struct obf_func *func);
CUresult obc_func_attrs(struct obf_func *func);
CUresult obc_func_set_attr(struct obf_func *func, CUfunction_attribute attr, int value);
CUresult obc_global_get(
	struct obf_mod *mod, const char *name, CUdeviceptr *ret_addr, size_t *ret_size);

#endif
