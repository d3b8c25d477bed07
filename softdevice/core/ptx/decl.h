/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Declarations of parameters and functions. */
#ifndef OBD_CORE_DECL_H
#define OBD_CORE_DECL_H

#include "softdevice/core/ptx/loader.h"
#include "softdevice/core/ptx/type.h"

#define OBD_MAX_WORDS 8192u /* in the parameters of one call */

struct obd_func;

struct obd_param_decl {
	const char *name;
	uint32_t name_size;
	enum obd_type type;
	uint32_t bytes, align, offset, words;
	bool is_array, is_register;
};

struct obd_function_decl {
	struct obd_func *func;
	struct obd_param_decl *params, *rets;
	uint32_t n_params, n_rets;
	bool is_weak, is_extern;
};

/* Reads one parameter, from .param or .reg on. */
void obd_decl_param(struct obd_loader *ld, struct obd_param_decl *ret);
/* Reads a list in ( ). */
struct obd_param_decl *obd_decl_params(struct obd_loader *ld, uint32_t *ret_n);
/* The number of 32-bit words that n parameters take in a call. */
uint32_t obd_decl_words(struct obd_loader *ld, const struct obd_param_decl *p, uint32_t n);

#endif
