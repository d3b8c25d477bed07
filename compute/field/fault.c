/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdarg.h>
#include <stdio.h>

#include "compute/field/fault.h"

enum ob_err obk_fault_set(
	struct obk_fault *fault, enum ob_err err, size_t item, const char *format, ...)
{
	va_list args;

	if (!fault)
		return err;
	fault->err = err;
	fault->item = item;
	va_start(args, format);
	vsnprintf(fault->text, sizeof(fault->text), format, args);
	va_end(args);
	return err;
}
