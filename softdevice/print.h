/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_print: what kernels of one context have printed and the program has not seen yet. Kernels
 * append from any thread; the program's own threads hand it to stdout when they synchronise, so
 * that it keeps its place among the program's own output.
 */
#ifndef OBD_PRINT_H
#define OBD_PRINT_H

#include <pthread.h>
#include <stddef.h>

/* bytes kept; beyond it the newest is lost, where a GPU would lose the oldest of 1 MiB */
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
