/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/announce.h"

#include <dlfcn.h>
#include <string.h>

static void (*mark)(uint64_t base, uint64_t size, bool on);

void obc_announce_start(void)
{
	void *found = dlsym(RTLD_DEFAULT, "outboard_buffers_mark");

	memcpy(&mark, &found, sizeof mark);
}

void obc_announce(uint64_t base, uint64_t size, bool on)
{
	if (mark)
		mark(base, size, on);
}
