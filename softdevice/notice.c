/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/notice.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "softdevice/config.h"

#define LINE_MAX_BYTES 1024
#define NAME_MAX_BYTES 128

/* Writes with one system call instead of stdio, because the program may hold stdio's lock. */
static void tell(const char *line, int n)
{
	size_t size = ob_min((size_t)(n > 0 ? n : 0), (size_t)LINE_MAX_BYTES - 1);

	if (write(STDERR_FILENO, line, size) < 0)
		ob_info("a line for the user could not be written");
}

void obd_notice_fault(const struct obd_fault *fault)
{
	static atomic_flag told = ATOMIC_FLAG_INIT;
	char line[LINE_MAX_BYTES];

	if (!fault->text[0])
		return;
	if (obd_config.memcheck) {
		tell(line, snprintf(line, sizeof line, "========= %s\n", fault->text));
		return;
	}
	/* A failed assertion has already printed a line. */
	if (fault->result == CUDA_ERROR_ASSERT || atomic_flag_test_and_set(&told))
		return;
	tell(line,
		snprintf(line, sizeof line,
			"outboard: a kernel failed: %s. CUDA reports it at a later call as error "
			"%d; no further failure is told. "
			"OUTBOARD_SOFT_MEMCHECK=1 where the software device runs (outboard-server, "
			"or 'outboard run --direct') tells each and checks every access\n",
			fault->text, (int)fault->result));
}

/* The length of the PTX name at `text`. */
static size_t name_length(const char *text, const char *end)
{
	size_t n = 0;

	while (text + n < end && n < NAME_MAX_BYTES - 1 &&
		(text[n] == '_' || text[n] == '$' || text[n] == '%' ||
			(text[n] >= '0' && text[n] <= '9') ||
			((text[n] | 32) >= 'a' && (text[n] | 32) <= 'z')))
		n++;
	return n;
}

/*
 * The name of the kernel or function that contains the line: the last one that begins before it.
 * Empty if there is none.
 */
static void function_at(const char *ptx, size_t size, unsigned line, char ret_name[NAME_MAX_BYTES])
{
	const char *end = ptx + size, *last = NULL;
	static const char entry[] = ".entry";

	for (const char *c = ptx; c < end && line; c++) {
		if (*c == '\n')
			line--;
		else if ((size_t)(end - c) > sizeof entry &&
			memcmp(c, entry, sizeof entry - 1) == 0)
			last = c + sizeof entry - 1;
	}
	while (last && last < end &&
		(*last == ' ' || *last == '\t' || *last == '\n' || *last == '\r'))
		last++;
	snprintf(ret_name, NAME_MAX_BYTES, "%.*s", last ? (int)name_length(last, end) : 0,
		last ? last : "");
}

void obd_notice_ptx(const char *log, const char *ptx, size_t size)
{
	static atomic_flag told = ATOMIC_FLAG_INIT;
	char line[LINE_MAX_BYTES], name[NAME_MAX_BYTES] = "";
	unsigned number;

	ob_info("PTX that the software device does not take: %s", log);
	if (atomic_flag_test_and_set(&told))
		return;
	if (sscanf(log, "line %u", &number) == 1)
		function_at(ptx, size, number, name);
	tell(line,
		snprintf(line, sizeof line,
			"outboard: the software device does not take a module's PTX: %.*s%s%s. "
			"Nothing of that module runs; no "
			"further refusal is "
			"told. OUTBOARD_LOG=info where the software device runs (outboard-server, "
			"or 'outboard run --direct') logs each; a GPU's driver may take it\n",
			(int)ob_min(strcspn(log, "\n"), (size_t)600), log,
			name[0] ? ", in kernel " : "", name));
}
