/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/ptx/loader.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void obd_ptx_fail_with(struct obd_loader *ld, CUresult result, const char *format, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (ld->log && ld->log_size)
		snprintf(ld->log, ld->log_size, "line %u: %s\n",
			ld->stmt_line ? ld->stmt_line : ld->lex.tok.line, text);
	ld->result = result;
	longjmp(ld->fail, 1);
}

void obd_ptx_fail(struct obd_loader *ld, const char *format, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	obd_ptx_fail_with(ld, CUDA_ERROR_INVALID_PTX, "%s", text);
}

void obd_ptx_refuse(struct obd_loader *ld, const char *format, ...)
{
	char text[256];
	va_list ap;
	size_t size;
	char *why;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (!ld->in_body)
		obd_ptx_fail(ld, "%s", text);
	size = strlen(text) + 32;
	why = obd_ptx_alloc(ld, size);
	snprintf(why, size, "PTX line %u: %s", ld->stmt_line ? ld->stmt_line : ld->lex.tok.line,
		text);
	ld->refused = why;
	longjmp(ld->refuse, 1);
}

void *obd_ptx_alloc(struct obd_loader *ld, size_t size)
{
	void *p = obd_arena_alloc(ld->arena, size);

	if (!p)
		obd_ptx_fail_with(
			ld, CUDA_ERROR_OUT_OF_MEMORY, "out of memory while the module is compiled");
	return p;
}

void *obd_ptx_scratch(struct obd_loader *ld, size_t size)
{
	void *p = obd_arena_alloc(ld->scratch, size);

	if (!p)
		obd_ptx_fail_with(
			ld, CUDA_ERROR_OUT_OF_MEMORY, "out of memory while the module is compiled");
	return p;
}

void obd_ptx_grow(struct obd_loader *ld, void *array_pointer, uint32_t *cap, uint32_t n,
	size_t size, uint32_t most)
{
	void *p;

	memcpy(&p, array_pointer, sizeof(p));
	if (n < *cap)
		return;
	if (n >= most)
		obd_ptx_fail(ld,
			"a table of the compiler would exceed %u entries: the module is too large",
			most);
	uint32_t fresh = *cap ? *cap * 2 : 64;

	p = realloc(p, fresh * size);
	if (!p)
		obd_ptx_fail_with(
			ld, CUDA_ERROR_OUT_OF_MEMORY, "out of memory while the module is compiled");
	memcpy(array_pointer, &p, sizeof(p));
	*cap = fresh;
}
