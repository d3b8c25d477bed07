/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "front/backing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"

void obf_backing_find(uint64_t addr, struct obf_backing *ret)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	OB_CLEANUP(ob_freep) char *line = NULL;
	size_t room = 0;

	*ret = (struct obf_backing){ .inode = 0 };
	while (maps && getline(&line, &room, maps) > 0) {
		struct obf_backing one;
		uint64_t low, high;
		char shared;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*3c%c %" SCNx64 " %x:%x %" SCNu64, &low,
			    &high, &shared, &one.offset, &one.major, &one.minor, &one.inode) != 7 ||
			addr < low || addr >= high)
			continue;
		one.offset += addr - low;
		if (shared == 's')
			*ret = one;
		break;
	}
	if (maps)
		fclose(maps);
}

bool obf_backing_meets(
	const struct obf_backing *a, uint64_t a_size, const struct obf_backing *b, uint64_t b_size)
{
	return a->inode && a->inode == b->inode && a->major == b->major && a->minor == b->minor &&
		a->offset < b->offset + b_size && b->offset < a->offset + a_size;
}
