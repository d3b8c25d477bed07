/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Device printf: any format and any arguments, in a window of device memory whose neighbouring
 * pages are not readable. The format may lie at the window's end without a final NUL; arguments and
 * strings may point anywhere. The output must be bounded, and nothing outside the window may be
 * read.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/check.h"
#include "softdevice/core/engine/format.h"
#include "tests/fuzz/fuzz.h"

#define WINDOW    65536u
#define ARGUMENTS 256u

static uint8_t *window;

/* The pages before and after the window are not readable. */
static void window_make(void)
{
	uint8_t *p = mmap(
		NULL, 3 * WINDOW, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED || mprotect(p + WINDOW, WINDOW, PROT_READ | PROT_WRITE) != 0)
		exit(1);
	window = p + WINDOW;
}

/* Addresses in the arguments: in the window, near its ends, or unchanged from the input. */
static void arguments_aim(uint8_t *arguments, const uint8_t *how, size_t n)
{
	for (size_t i = 0; i < n && 8 * i + 8 <= ARGUMENTS; i++) {
		uint64_t at = (uintptr_t)window + how[i] * 256u;

		if (how[i] % 4 == 1)
			at = (uintptr_t)window + WINDOW - how[i] / 4;
		else if (how[i] % 4 == 2)
			continue;
		else if (how[i] % 4 == 3)
			at = how[i] == 3 ? 0 : (uintptr_t)window + WINDOW + how[i];
		memcpy(arguments + 8 * i, &at, 8);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t arguments;
	size_t n, text_size = 0;
	uint8_t *format;
	char *text = NULL;
	bool at_end;

	if (!window)
		window_make();
	if (size < 16)
		return 0;
	memset(window, data[1], WINDOW);
	at_end = data[0] & 1;
	arguments = (uintptr_t)window + (data[0] & 2 ? WINDOW - data[2] : 4096u + data[2] % 8);
	n = ob_min(size - 16, (size_t)(data[0] & 2 ? data[2] : ARGUMENTS));
	memcpy((void *)(uintptr_t)arguments, data + 16, n);
	if (!(data[0] & 2))
		arguments_aim((uint8_t *)(uintptr_t)(arguments & ~(uint64_t)7), data + 3,
			data[0] >> 4 & 7);
	if (data[0] & 4)
		arguments = arguments + ((uint64_t)data[3] << 56);
	n = ob_min(size - 16, (size_t)WINDOW / 2);
	format = at_end ? window + WINDOW - n : window + 8192;
	memmove(format, data + 16, n);
	if (!at_end)
		format[n] = 0;
	else if (data[0] & 8 && n)
		format[n - 1] = 0;
	obd_format((const char *)format, arguments, (uintptr_t)window, WINDOW, &text, &text_size);
	if (text_size > OBD_FORMAT_TEXT_MAX || (text && memchr(text, 0, text_size + 1) == NULL))
		abort();
	free(text);
	return 0;
}
