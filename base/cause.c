/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/cause.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum ob_err ob_cause_set(struct ob_cause *ret_cause, enum ob_err code, const char *format, ...)
{
	char text[OB_CAUSE_TEXT]; /* an argument may be the old text */
	va_list args;

	if (!ret_cause)
		return code;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	ret_cause->code = code;
	ret_cause->system = 0;
	memcpy(ret_cause->text, text, sizeof text);
	return code;
}

enum ob_err ob_cause_set_system(
	struct ob_cause *ret_cause, enum ob_err code, int system, const char *format, ...)
{
	char text[OB_CAUSE_TEXT - 64]; /* leaves room for the system's text */
	va_list args;

	if (!ret_cause)
		return code;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	ob_cause_set(ret_cause, code, "%s: %s", text, strerror(system));
	ret_cause->system = system;
	return code;
}
