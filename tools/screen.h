/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obx_screen: the terminal of a program that redraws: its size, a key at a time without echo, and
 * its old state again at the end, also after an interrupt. One for the process; main thread.
 */
#ifndef OBX_SCREEN_H
#define OBX_SCREEN_H

#include <stdbool.h>

struct obx_screen {
	bool terminal;          /* standard output is one */
	bool keys;              /* keys come one at a time from standard input */
	unsigned rows, columns; /* UINT_MAX where nothing bounds them */
};

void obx_screen_open(struct obx_screen *screen);
/* Back to how it was; also done when the process ends. */
void obx_screen_close(struct obx_screen *screen);
/* Asks for the size again and clears; nothing without a terminal. */
void obx_screen_clear(struct obx_screen *screen);
/*
 * Waits for so long. True: the user pressed q (or the terminal went away). Another key only ends
 * the wait.
 */
bool obx_screen_wait(struct obx_screen *screen, double seconds);

#endif
