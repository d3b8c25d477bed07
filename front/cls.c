/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Context-local storage: values that runtimes attach to a context, by key. Each cudart in a process
 * has one key and looks it up in every runtime call, so get takes no lock. The rows of a context
 * object are in a short list of blocks that are never moved or freed.
 *
 * A writer stores the value first, then the key (release). get reads the key, the value, and the
 * key again. put and delete hold the context's lock.
 */
#include <stdlib.h>

#include "front/private.h"

#define ROWS       16u
#define BLOCKS_MAX 64u /* 1024 keys in one context */

struct row {
	void *_Atomic key; /* NULL: free */
	void *_Atomic value;
	obf_cls_dtor dtor; /* under the lock */
};

struct obf_cls_block {
	struct row rows[ROWS];
	struct obf_cls_block *_Atomic next;
};

static struct row *row_find(struct obf_context *context, const void *key)
{
	struct obf_cls_block *block = atomic_load_explicit(&context->cls, memory_order_acquire);

	for (; block; block = atomic_load_explicit(&block->next, memory_order_acquire))
		for (unsigned i = 0; i < ROWS; i++)
			if (atomic_load_explicit(&block->rows[i].key, memory_order_acquire) == key)
				return &block->rows[i];
	return NULL;
}

/* Returns a free row; the caller holds the context's lock. */
static struct row *row_make(struct obf_context *context)
{
	struct obf_cls_block *_Atomic *link = &context->cls;
	struct row *row = row_find(context, NULL);
	struct obf_cls_block *block;
	unsigned n = 0;

	if (row)
		return row;
	for (; (block = atomic_load(link)); link = &block->next)
		n++;
	if (n == BLOCKS_MAX)
		return NULL;
	block = calloc(1, sizeof *block);
	if (!block)
		return NULL;
	atomic_store_explicit(link, block, memory_order_release);
	return &block->rows[0];
}

CUresult obf_cls_put(CUcontext ctx, void *key, void *value, obf_cls_dtor dtor)
{
	struct obf_context *context;
	CUresult result = obf_context_find(ctx, &context);
	struct row *row;

	if (result != CUDA_SUCCESS)
		return result;
	if (!key)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&context->lock);
	row = row_find(context, key);
	if (!row)
		row = row_make(context);
	if (row) {
		row->dtor = dtor;
		atomic_store_explicit(&row->value, value, memory_order_relaxed);
		atomic_store_explicit(&row->key, key, memory_order_release);
	} else {
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&context->lock);
	return result;
}

CUresult obf_cls_delete(CUcontext ctx, void *key)
{
	struct obf_context *context;
	CUresult result = obf_context_find(ctx, &context);
	struct row *row;

	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&context->lock);
	row = key ? row_find(context, key) : NULL;
	if (row)
		atomic_store_explicit(&row->key, NULL, memory_order_release);
	pthread_mutex_unlock(&context->lock);
	return row ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult obf_cls_get(void **ret_value, CUcontext ctx, void *key)
{
	struct obf_context *context;
	CUresult result = obf_context_find(ctx, &context);
	const struct row *row;
	void *value;

	if (ob_unlikely(result != CUDA_SUCCESS))
		return result;
	if (ob_unlikely(!key || !ret_value))
		return CUDA_ERROR_INVALID_VALUE;
	row = row_find(context, key);
	if (!row)
		/* by this result a runtime detects that it must create its state */
		return CUDA_ERROR_INVALID_HANDLE;
	value = atomic_load_explicit(&row->value, memory_order_acquire);
	if (atomic_load_explicit(&row->key, memory_order_relaxed) != key)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_value = value;
	return CUDA_SUCCESS;
}

void obf_cls_end(struct obf_context *context)
{
	/* The blocks remain in the context object, because another thread may be reading them. */
	for (struct obf_cls_block *block = atomic_load(&context->cls); block;
		block = atomic_load(&block->next))
		for (unsigned i = 0; i < ROWS; i++) {
			void *key = atomic_exchange(&block->rows[i].key, NULL);

			/* A destructor may call the driver: no lock is held. */
			if (key && block->rows[i].dtor)
				block->rows[i].dtor(context->pub.handle, key,
					atomic_load(&block->rows[i].value));
		}
}
