/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_print: output of the kernels of one context that has not been written yet. Kernels append
 * from any thread. The program's own threads write it to stdout when they synchronise, so that it
 * appears in the right order relative to the program's own output.
 */
#ifndef OBD_PRINT_H
#define OBD_PRINT_H

#include <pthread.h>
#include <stddef.h>

/* Bytes kept. Beyond that the newest output is lost; a GPU loses the oldest of 1 MiB. */
#define OBD_PRINT_MAX (64u << 20)

struct obd_print {
	pthread_mutex_t lock;
	char *text;
	size_t size, capacity;
};

void obd_print_init(struct obd_print *print);
void obd_print_fini(struct obd_print *print);
void obd_print_append(struct obd_print *print, const char *text, size_t size);
void obd_print_flush(struct obd_print *print);

#endif
