/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The form of the page: name=value&name=value becomes a sweep. No state; any thread. */
#ifndef OBX_RQA_FORM_H
#define OBX_RQA_FORM_H

#include "compute/command/rqa/sweep.h"

#define OBX_FORM_FIELD_MAX 40

/*
 * body is changed. On false ret_field names the field that is wrong ("" for none) and error says
 * how. The sweep's folder and pattern are left to the caller; its out becomes out_root/NAME, where
 * NAME comes from the field "name" (letters, digits, - and _).
 */
bool obx_form_sweep(char *body, const char *out_root, struct obx_sweep *sweep,
	char ret_field[OBX_FORM_FIELD_MAX], struct obx_error *error);

#endif
