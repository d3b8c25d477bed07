/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "front/object.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Under the lock. */
static bool chunk_make(struct obf_objects *objects, size_t size)
{
	char *chunk = calloc(objects->chunk, size);

	if (!chunk)
		return false;
	for (unsigned i = 0; i < objects->chunk; i++) {
		struct obf_object *object = (struct obf_object *)(void *)(chunk + i * size);

		object->next = objects->free;
		objects->free = object;
	}
	return true;
}

void *obf_object_take(struct obf_objects *objects, size_t size, struct obf_ctx *ctx)
{
	struct obf_object *object = NULL;

	pthread_mutex_lock(&objects->lock);
	if (objects->free || chunk_make(objects, size)) {
		object = objects->free;
		objects->free = object->next;
	}
	pthread_mutex_unlock(&objects->lock);
	if (object) {
		memset(object, 0, size);
		object->ctx = ctx;
	}
	return object;
}

void obf_object_give(struct obf_objects *objects, struct obf_object *object)
{
	pthread_mutex_lock(&objects->lock);
	object->ctx = NULL;
	object->next = objects->free;
	objects->free = object;
	pthread_mutex_unlock(&objects->lock);
}
