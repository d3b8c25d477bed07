/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obx_program: finds from a command's file whether a library can be preloaded into it. The file is
 * untrusted: every offset is checked. Any thread.
 */
#ifndef OBX_PROGRAM_H
#define OBX_PROGRAM_H

#include <stddef.h>

#define OBX_PROGRAM_PATH 4096u

enum obx_program {
	/* uses glibc's loader, is a script, or could not be read: the loader's variables are set */
	OBX_PROGRAM_PLAIN,
	/*
	 * needs the runtime of AddressSanitizer, which must be the first library: nothing may be
	 * preloaded
	 */
	OBX_PROGRAM_SANITIZER,
	OBX_PROGRAM_STATIC, /* loads no library */
	/*
	 * uses another C library than the one that our libraries are built for: it would not start
	 * with one of ours preloaded
	 */
	OBX_PROGRAM_MUSL,
	OBX_PROGRAM_NARROW, /* 32 bits */
};

/*
 * Searches for the command as execvp does. ret_path: the file found, OBX_PROGRAM_PATH bytes. Never
 * fails: a file that cannot be read is PLAIN.
 */
enum obx_program obx_program_look(const char *command, char *ret_path);

#endif
