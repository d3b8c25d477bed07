/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/engine/fail.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const names[] = { "ok", "argument", "limit", "no-memory", "device", "no-device",
	"timeout", "cancelled", "unsupported", "io", "internal" };

const char *outboard_status_name(int status)
{
	return status >= 0 && (size_t)status < sizeof(names) / sizeof(names[0]) ? names[status]
										: "?";
}

const char *outboard_version(void)
{
	return OB_VERSION;
}

int obv_fail(struct outboard_error *error, int status, uint64_t item, const char *format, ...)
{
	va_list args;

	if (!error)
		return status;
	error->status = status;
	error->device = OUTBOARD_ANY_DEVICE;
	error->item = item;
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return status;
}

int obv_status_of(enum ob_err err)
{
	switch (err) {
	case OB_ERR_NONE:
		return OUTBOARD_OK;
	case OB_ERR_ARGUMENT:
	case OB_ERR_HANDLE:
		return OUTBOARD_ARGUMENT;
	case OB_ERR_LIMIT:
		return OUTBOARD_LIMIT;
	case OB_ERR_NO_MEMORY:
		return OUTBOARD_NO_MEMORY;
	case OB_ERR_CANCELLED:
		return OUTBOARD_CANCELLED;
	case OB_ERR_UNSUPPORTED:
	case OB_ERR_IMAGE_NO_ENTRY:
		return OUTBOARD_UNSUPPORTED;
	case OB_ERR_IO:
		return OUTBOARD_IO;
	default:
		return OUTBOARD_DEVICE;
	}
}

int obv_fail_fault(struct outboard_error *error, enum ob_err err, const struct obk_fault *fault)
{
	int status = obv_status_of(err);

	if (status == OUTBOARD_OK)
		return status;
	return obv_fail(error, status,
		fault->item == OBK_FAULT_NO_ITEM ? OUTBOARD_NO_ITEM : fault->item, "%s",
		fault->text);
}
