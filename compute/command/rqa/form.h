/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Converts the form of the web page, name=value&name=value, to a sweep. No state; any thread. */
#ifndef OBX_RQA_FORM_H
#define OBX_RQA_FORM_H

#include "compute/command/rqa/sweep.h"

#define OBX_FORM_FIELD_MAX 40

/*
 * Changes body. On false, ret_field names the field that is wrong ("": none) and error says why.
 * The caller sets the sweep's folder and pattern. Its `out` becomes out_root/NAME, where NAME is
 * from the field "name" (letters, digits, - and _).
 */
bool obx_form_sweep(char *body, const char *out_root, struct obx_sweep *sweep,
	char ret_field[OBX_FORM_FIELD_MAX], struct obx_error *error);

#endif
