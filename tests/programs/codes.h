/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * With OUTBOARD_TEST_CODES in the environment a program writes a line to stderr for each call whose
 * error code is to be compared. `run.py --mode same` runs the program on a device in its own
 * process and through a server and compares these lines, even where a program accepts several
 * codes.
 */
#ifndef TESTS_PROGRAMS_CODES_H
#define TESTS_PROGRAMS_CODES_H

#include <stdio.h>
#include <stdlib.h>

static inline void code_note(const char *call, int code)
{
	if (getenv("OUTBOARD_TEST_CODES"))
		fprintf(stderr, "code: %s -> %d\n", call, code);
}

#endif
