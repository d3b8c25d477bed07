/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * One sentence for a person: what is wrong, where (file and line when there is one), and what to
 * do. Filled by the function that knows the cause.
 */
#ifndef OBX_RQA_ERROR_H
#define OBX_RQA_ERROR_H

#include <stdbool.h>

#define OBX_ERROR_MAX 1024

struct obx_error {
	char text[OBX_ERROR_MAX];
};

/*
 * Always false, so that a function may end with `return obx_error_set(error, ...)`. Any thread, one
 * error at a time.
 */
bool obx_error_set(struct obx_error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
