/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * An error text of one sentence: what is wrong, where (file and line if there is one), and what to
 * do. The function that knows the cause sets it.
 */
#ifndef OBX_RQA_ERROR_H
#define OBX_RQA_ERROR_H

#include <stdbool.h>

#define OBX_ERROR_MAX 1024

struct obx_error {
	char text[OBX_ERROR_MAX];
};

/*
 * Always returns false, so that callers can write: return obx_error_set(error, ...). Any thread,
 * one error at a time.
 */
bool obx_error_set(struct obx_error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
