/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Description of why a kernel refused its input: the error, the index of the first item at fault
 * and a sentence that says what to do. The caller owns it, one per call. It is written only when a
 * function does not return OB_ERR_NONE. A NULL fault is allowed everywhere.
 */
#ifndef OBK_FAULT_H
#define OBK_FAULT_H

#include <stddef.h>

#include "base/err.h"

#define OBK_FAULT_TEXT    200
#define OBK_FAULT_NO_ITEM ((size_t)-1)

struct obk_fault {
	enum ob_err err;
	size_t item; /* index of the first bad item, or OBK_FAULT_NO_ITEM */
	char text[OBK_FAULT_TEXT];
};

/*
 * Fills fault (if not NULL) and returns err, so that callers can write: return obk_fault_set(...).
 */
enum ob_err obk_fault_set(struct obk_fault *fault, enum ob_err err, size_t item, const char *format,
	...) __attribute__((format(printf, 4, 5)));

#endif
