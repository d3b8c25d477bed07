/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obx_screen: the terminal of a program that redraws its output. Reports the size, reads single
 * keys without echo, and restores the terminal's state at the end, also after an interrupt. One per
 * process; main thread.
 */
#ifndef OBX_SCREEN_H
#define OBX_SCREEN_H

#include <stdbool.h>

struct obx_screen {
	bool terminal;          /* standard output is one */
	bool keys;              /* keys come one at a time from standard input */
	unsigned rows, columns; /* UINT_MAX: unlimited */
};

void obx_screen_open(struct obx_screen *screen);
/* Restores the terminal. Also done when the process ends. */
void obx_screen_close(struct obx_screen *screen);
/* Reads the size again and clears the screen. Does nothing without a terminal. */
void obx_screen_clear(struct obx_screen *screen);
/*
 * Waits for the given time. True: the user pressed q, the terminal was closed, or nobody reads
 * standard output any more. Any other key only ends the wait.
 */
bool obx_screen_wait(struct obx_screen *screen, double seconds);

#endif
