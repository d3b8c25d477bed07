/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/print.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "softdevice/core/heap.h"

void obd_print_init(struct obd_print *print)
{
	*print = (struct obd_print){ 0 };
	pthread_mutex_init(&print->lock, NULL);
}

void obd_print_fini(struct obd_print *print)
{
	obd_heap_free(print->text);
	pthread_mutex_destroy(&print->lock);
}

static bool room_make(struct obd_print *print, size_t more)
{
	size_t need = print->size + more, capacity = ob_max(print->capacity, (size_t)4096);
	char *text;

	if (need > OBD_PRINT_MAX)
		return false;
	if (need <= print->capacity)
		return true;
	while (capacity < need)
		capacity *= 2;
	text = obd_heap_alloc(capacity);
	if (!text)
		return false;
	if (print->size)
		memcpy(text, print->text, print->size);
	obd_heap_free(print->text);
	print->text = text;
	print->capacity = capacity;
	return true;
}

void obd_print_append(struct obd_print *print, const char *text, size_t size)
{
	pthread_mutex_lock(&print->lock);
	if (size && room_make(print, size)) {
		memcpy(print->text + print->size, text, size);
		__atomic_store_n(&print->size, print->size + size, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&print->lock);
}

void obd_print_flush(struct obd_print *print)
{
	char *text;
	size_t size;

	/*
	 * Every synchronising call comes here, so the case without output must be cheap. A relaxed
	 * load suffices: the op that printed happened before this thread saw that it was done.
	 */
	if (__atomic_load_n(&print->size, __ATOMIC_RELAXED) == 0)
		return;
	pthread_mutex_lock(&print->lock);
	text = print->text;
	size = print->size;
	print->text = NULL;
	print->capacity = 0;
	__atomic_store_n(&print->size, 0, __ATOMIC_RELAXED);
	/*
	 * Written with the lock held, so that two threads that synchronise at the same time keep
	 * the order of the output.
	 */
	if (size)
		fwrite(text, 1, size, stdout);
	pthread_mutex_unlock(&print->lock);
	obd_heap_free(text);
}
