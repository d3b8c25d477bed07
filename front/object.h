/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_object: the common part of streams and events, and the lists of unused objects. Objects are
 * allocated in chunks, reused and never freed. So a look-up that races with an object's end, which
 * is an error of the program, always reads an object and no other memory. Any thread.
 */
#ifndef OBF_OBJECT_H
#define OBF_OBJECT_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct obf_ctx;

struct obf_object {
	struct obf_ctx *ctx; /* NULL: unused */
	uint64_t handle;     /* the id that the program holds */
	struct obf_object *next;
};

/* Statically initialised: { .lock = PTHREAD_MUTEX_INITIALIZER, .chunk = N }. */
struct obf_objects {
	pthread_mutex_t lock;
	unsigned chunk; /* number of objects allocated at once */
	struct obf_object *free;
};

/* Returns an object of `size` bytes, zeroed except for its context. NULL: out of memory. */
void *obf_object_take(struct obf_objects *objects, size_t size, struct obf_ctx *ctx);
void obf_object_give(struct obf_objects *objects, struct obf_object *object);

#endif
