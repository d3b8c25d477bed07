/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obx_program: what kind of program a command is, by its file alone, as far as it matters for a
 * library that the loader is to bring along. The file is somebody's: every offset is checked. Any
 * thread.
 */
#ifndef OBX_PROGRAM_H
#define OBX_PROGRAM_H

#include <stddef.h>

#define OBX_PROGRAM_PATH 4096u

enum obx_program {
	/* glibc's loader, a script, or nothing that can be told: the loader's variables are set */
	OBX_PROGRAM_PLAIN,
	/*
	 * needs the address sanitizer's runtime, which must be the first library: nothing may be
	 * preloaded
	 */
	OBX_PROGRAM_SANITIZER,
	OBX_PROGRAM_STATIC, /* loads no library */
	/*
	 * another C library than the one that ours are built for: a preloaded one would keep it
	 * from starting
	 */
	OBX_PROGRAM_MUSL,
	OBX_PROGRAM_NARROW, /* 32 bits */
};

/*
 * Looks for the command as execvp does. ret_path: the file, OBX_PROGRAM_PATH bytes. Never fails:
 * what cannot be read is PLAIN.
 */
enum obx_program obx_program_look(const char *command, char *ret_path);

#endif
