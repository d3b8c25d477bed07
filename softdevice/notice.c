/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/notice.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "softdevice/config.h"

#define LINE_MAX_BYTES 1280
#define NAME_MAX_BYTES 128

/* Writes with one system call instead of stdio, because the program may hold stdio's lock. */
static void write_line(const char *line, int n)
{
	size_t size = ob_min((size_t)(n > 0 ? n : 0), (size_t)LINE_MAX_BYTES - 1);

	if (write(STDERR_FILENO, line, size) < 0)
		ob_info("a message could not be written to descriptor 2: %s", strerror(errno));
}

void obd_notice_fault(const struct obd_fault *fault)
{
	static atomic_flag reported = ATOMIC_FLAG_INIT;
	char line[LINE_MAX_BYTES];

	if (!fault->text[0])
		return;
	if (obd_config.memcheck) {
		write_line(line, snprintf(line, sizeof line, "========= %s\n", fault->text));
		return;
	}
	/* A failed assertion has already printed a line. */
	if (fault->result == CUDA_ERROR_ASSERT || atomic_flag_test_and_set(&reported))
		return;
	write_line(line,
		snprintf(line, sizeof line,
			"outboard: a kernel failed: %s. A later CUDA call returns error %d. "
			"Failures of other kernels are not reported. To check every access and "
			"report every failure, set OUTBOARD_SOFT_MEMCHECK=1 for the software "
			"device (outboard-server, or 'outboard run --direct')\n",
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
	static atomic_flag reported = ATOMIC_FLAG_INIT;
	char line[LINE_MAX_BYTES], name[NAME_MAX_BYTES] = "";
	unsigned number;

	ob_info("the software device cannot load a module's PTX: %s", log);
	if (atomic_flag_test_and_set(&reported))
		return;
	if (sscanf(log, "line %u", &number) == 1)
		function_at(ptx, size, number, name);
	write_line(line,
		snprintf(line, sizeof line,
			"outboard: the software device cannot load a module's PTX: %.*s%s%s. No "
			"kernel of that module can run. The driver of a GPU may accept the PTX. "
			"Errors of other modules are not reported here; to log them, set "
			"OUTBOARD_LOG=info for the software device (outboard-server, or 'outboard "
			"run --direct')\n",
			(int)ob_min(strcspn(log, "\n"), (size_t)600), log,
			name[0] ? ", in kernel " : "", name));
}
