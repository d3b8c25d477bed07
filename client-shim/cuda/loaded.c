/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/loaded.h"

#include <link.h>
#include <stdint.h>

#include "base/pages.h"

/* Made by the linker: the head of the file, which is the first byte of its first segment. */
extern ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

void obc_loaded_release(void)
{
	uint8_t *file = (uint8_t *)&__ehdr_start;
	const ElfW(Phdr) *segment = (const ElfW(Phdr) *)(file + __ehdr_start.e_phoff);

	/*
	 * A segment that is only read is the same in memory as in the file. Not code: a debugger
	 * may have written breakpoints there. Linkers that put code and tables into one segment
	 * (-z noseparate-code) leave nothing to give back.
	 */
	for (unsigned i = 0; i < __ehdr_start.e_phnum; i++, segment++)
		if (segment->p_type == PT_LOAD && segment->p_flags == PF_R)
			ob_pages_discard(file + segment->p_vaddr, segment->p_filesz);
}
