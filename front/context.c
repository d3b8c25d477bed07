/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Contexts: creation and destruction, and each thread's stack of current contexts. A context object
 * is reused after its end and never freed. Stacks store the handle beside the pointer, and no
 * handle is used twice, so the end of a context that is still current in a thread is detected.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "front/array.h"
#include "front/event.h"
#include "front/green_view.h"
#include "front/memory.h"
#include "front/mempool.h"
#include "front/private.h"
#include "front/stream.h"
#include "front/texref.h"
#include "front/texture.h"
#include "protocol/obf_calls.h"

struct stack_row {
	struct obf_context *context;
	CUcontext handle;
};

/*
 * Small, so that it fits the space that glibc reserves for the thread-local storage of libraries
 * loaded with dlopen.
 */
#define STACK_INLINE 8u

struct stack {
	uint32_t depth;
	struct stack_row rows[STACK_INLINE];
	struct stack_row *deep; /* rows from STACK_INLINE on; NULL if there are none */
};

static _Thread_local struct stack stack;
_Thread_local bool obf_in_host_function;

static struct ob_ids ctx_ids = OB_IDS_INIT(OBF_KIND_CTX, OBF_CTX_MAX);
static struct obf_context *primaries[OBF_DEVICE_MAX];
static struct obf_context *_Atomic by_slot[OBF_CTX_MAX]; /* the last context that had this index */
static _Atomic uint64_t next_ctx_id = 1;

static pthread_mutex_t free_lock = PTHREAD_MUTEX_INITIALIZER;
static struct obf_context *free_contexts; /* under free_lock */

static void sticky_clear(struct obf_context *context)
{
	atomic_store(&context->pub.sticky, 0);
	atomic_store(&context->pub.sticky_reported, false);
}

static struct obf_context *context_take(int device, unsigned flags, bool primary)
{
	struct obf_context *context;
	uint64_t handle;

	pthread_mutex_lock(&free_lock);
	context = free_contexts;
	if (context)
		free_contexts = context->next_free;
	pthread_mutex_unlock(&free_lock);
	if (!context) {
		context = calloc(1, sizeof *context);
		if (!context)
			return NULL;
		pthread_mutex_init(&context->lock, NULL);
	}
	handle = ob_ids_add(&ctx_ids, context);
	context->pub.device = device;
	context->pub.flags = flags;
	context->pub.primary = primary;
	context->pub.backend = NULL;
	context->pub.id = atomic_fetch_add(&next_ctx_id, 1);
	sticky_clear(context);
	atomic_store(&context->pub.active, false);
	context->slot = ob_id_index(handle);
	context->usage = 0;
	context->was_active = false;
	context->cache_config = CU_FUNC_CACHE_PREFER_NONE;
	context->shared_config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
	for (int i = 0; i < CU_LIMIT_MAX; i++)
		atomic_store(&context->limit_known[i], false);
	context->pub.handle = (CUcontext)(uintptr_t)handle;
	if (handle)
		atomic_store(&by_slot[context->slot], context);
	return context;
}

/* Releases the object of a created context that has ended or was never started. */
static void context_put_back(struct obf_context *context)
{
	if (context->pub.handle)
		ob_ids_remove(&ctx_ids, (uint64_t)(uintptr_t)context->pub.handle);
	context->pub.handle = NULL; /* identifies stale rows of stacks */
	pthread_mutex_lock(&free_lock);
	context->next_free = free_contexts;
	free_contexts = context;
	pthread_mutex_unlock(&free_lock);
}

CUresult obf_contexts_start(int n_devices)
{
	for (int i = 0; i < n_devices; i++) {
		primaries[i] = context_take(i, 0, true);
		if (!primaries[i])
			return CUDA_ERROR_OUT_OF_MEMORY;
		/*
		 * Primary contexts have the first ids of the table: client and server use the same
		 * formula.
		 */
		if ((uint64_t)(uintptr_t)primaries[i]->pub.handle != OBF_CTX_PRIMARY_ID(i))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

static CUresult context_begin(struct obf_context *context)
{
	CUresult result = obf_process.backend->ctx_create(&context->pub);

	if (result != CUDA_SUCCESS)
		return result;
	result = obf_streams_begin(&context->pub);
	if (result != CUDA_SUCCESS) {
		obf_process.backend->ctx_destroy(&context->pub);
		obf_process.backend->ctx_release(&context->pub);
		return result;
	}
	sticky_clear(context);
	atomic_store_explicit(&context->pub.active, true, memory_order_release);
	return CUDA_SUCCESS;
}

/*
 * Destroys everything in the context: first the state of runtimes, whose destructors may call the
 * driver, then code, pinned memory and the backend's objects.
 */
static CUresult context_empty(struct obf_context *context)
{
	CUresult result;

	obf_cls_end(context);
	obf_greens_end(context);
	context->gate = NULL;
	memset(context->peers, 0, sizeof context->peers);
	obf_libraries_forget(context);
	obf_modules_end(context);
	obf_hostmem_end(&context->pub);
	atomic_store(&context->pub.active, false);
	context->was_active = true;
	result = obf_process.backend->ctx_destroy(&context->pub);
	obf_textures_end(&context->pub);
	obf_texrefs_end(&context->pub);
	obf_arrays_end(&context->pub);
	obf_events_end(&context->pub);
	obf_streams_end(&context->pub);
	obf_mempools_end(&context->pub);
	obf_memory_end(&context->pub);
	obf_process.backend->ctx_release(&context->pub);
	context->pub.backend = NULL;
	sticky_clear(context);
	for (int i = 0; i < CU_LIMIT_MAX; i++)
		atomic_store(&context->limit_known[i], false);
	return result;
}

CUresult obf_context_new(int device, unsigned flags, struct obf_context **ret)
{
	struct obf_context *context = context_take(device, flags, false);
	CUresult result;

	if (!context || !context->pub.handle) {
		if (context)
			context_put_back(context);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	context->usage = 1;
	result = context_begin(context);
	if (result != CUDA_SUCCESS) {
		context_put_back(context);
		return result;
	}
	result = obf_libraries_load(context);
	if (result != CUDA_SUCCESS) {
		obf_context_end(context);
		return result;
	}
	*ret = context;
	return CUDA_SUCCESS;
}

CUresult obf_context_end(struct obf_context *context)
{
	CUresult result = context_empty(context);

	context_put_back(context);
	return result;
}

CUresult obf_primary_retain(int device, struct obf_context **ret)
{
	struct obf_context *context = primaries[device];
	CUresult result = CUDA_SUCCESS;
	bool begun = false;

	pthread_mutex_lock(&context->lock);
	if (!atomic_load(&context->pub.active)) {
		context->pub.id =
			context->was_active ? atomic_fetch_add(&next_ctx_id, 1) : context->pub.id;
		result = context_begin(context);
		begun = result == CUDA_SUCCESS;
	}
	if (result == CUDA_SUCCESS)
		context->usage++;
	pthread_mutex_unlock(&context->lock);
	if (begun) {
		result = obf_libraries_load(context);
		if (result != CUDA_SUCCESS)
			obf_primary_release(device);
	}
	*ret = context;
	return result;
}

CUresult obf_primary_release(int device)
{
	struct obf_context *context = primaries[device];
	bool last;

	pthread_mutex_lock(&context->lock);
	if (context->usage == 0) {
		pthread_mutex_unlock(&context->lock);
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	last = --context->usage == 0 && atomic_load(&context->pub.active);
	pthread_mutex_unlock(&context->lock);
	return last ? context_empty(context) : CUDA_SUCCESS;
}

CUresult obf_primary_reset(int device)
{
	struct obf_context *context = primaries[device];

	return atomic_load(&context->pub.active) ? context_empty(context) : CUDA_SUCCESS;
}

struct obf_context *obf_context_at(uint32_t slot)
{
	struct obf_context *context = atomic_load(&by_slot[slot]);

	return context && context->slot == slot && atomic_load(&context->pub.active) ? context
										     : NULL;
}

struct obf_ctx *obf_ctx_primary(int device)
{
	return device >= 0 && device < obf_device_count() ? &primaries[device]->pub : NULL;
}

/* ---- stacks ---- */

static inline struct stack_row *stack_row_at(uint32_t i)
{
	return ob_likely(i < STACK_INLINE) ? &stack.rows[i] : &stack.deep[i - STACK_INLINE];
}

/* The row on top has changed. */
static void top_changed(void)
{
	void (*current)(int device) = obf_process.backend->current;

	if (ob_unlikely(current != NULL))
		current(stack.depth ? stack_row_at(stack.depth - 1)->context->pub.device : -1);
}

CUresult obf_stack_push(struct obf_context *context)
{
	return obf_stack_push_as(context, context->pub.handle);
}

CUresult obf_stack_push_as(struct obf_context *context, CUcontext handle)
{
	if (stack.depth == OBF_CTX_STACK_MAX) {
		ob_warn("cannot push another context: the thread's stack has its maximum of %u. "
			"Pop contexts with cuCtxPopCurrent",
			OBF_CTX_STACK_MAX);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (stack.depth == STACK_INLINE && !stack.deep) {
		stack.deep = calloc(OBF_CTX_STACK_MAX - STACK_INLINE, sizeof *stack.deep);
		if (!stack.deep)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*stack_row_at(stack.depth) = (struct stack_row){ context, handle };
	stack.depth++;
	top_changed();
	return CUDA_SUCCESS;
}

bool obf_stack_pop(CUcontext *ret_handle)
{
	if (stack.depth == 0)
		return false;
	stack.depth--;
	if (ret_handle)
		*ret_handle = stack_row_at(stack.depth)->handle;
	if (stack.depth <= STACK_INLINE && stack.deep) {
		free(stack.deep);
		stack.deep = NULL;
	}
	top_changed();
	return true;
}

void obf_ctx_visit(struct obf_ctx *ctx, struct obf_visit *ret)
{
	struct stack_row *row;

	ret->pushed = stack.depth == 0;
	if (ret->pushed)
		stack.depth = 1;
	row = stack_row_at(stack.depth - 1);
	ret->context = row->context;
	ret->handle = row->handle;
	*row = (struct stack_row){ obf_context_of(ctx), ctx->handle };
	top_changed();
}

void obf_ctx_visit_end(const struct obf_visit *visit)
{
	if (visit->pushed)
		stack.depth = 0;
	else
		*stack_row_at(stack.depth - 1) =
			(struct stack_row){ visit->context, visit->handle };
	top_changed();
}

CUcontext obf_stack_handle(void)
{
	return stack.depth ? stack_row_at(stack.depth - 1)->handle : NULL;
}

/* A row whose handle is not that of its context: is it of a green context that exists? */
static __attribute__((noinline)) bool row_green(const struct stack_row *row)
{
	const struct obf_green *green = obf_green_find((CUgreenCtx)row->handle);

	return green && green->primary == row->context;
}

static inline bool row_stale(const struct stack_row *row)
{
	return ob_unlikely(row->context->pub.handle != row->handle) && !row_green(row);
}

CUresult obf_stack_top(struct obf_context **ret, CUcontext *ret_handle)
{
	const struct stack_row *row;

	*ret = NULL;
	*ret_handle = NULL;
	if (stack.depth == 0)
		return CUDA_SUCCESS;
	row = stack_row_at(stack.depth - 1);
	*ret_handle = row->handle;
	if (row_stale(row))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*ret = row->context;
	return CUDA_SUCCESS;
}

CUresult obf_ctx_report(struct obf_ctx *ctx)
{
	int sticky = atomic_load_explicit(&ctx->sticky, memory_order_acquire);

	if (ob_unlikely(sticky != CUDA_SUCCESS))
		atomic_store_explicit(&ctx->sticky_reported, true, memory_order_relaxed);
	return (CUresult)sticky;
}

/* Errors after which every call in the context returns the same error, as in CUDA. */
static bool is_sticky(CUresult result)
{
	switch (result) {
	case CUDA_ERROR_ILLEGAL_ADDRESS:
	case CUDA_ERROR_LAUNCH_TIMEOUT:
	case CUDA_ERROR_ASSERT:
	case CUDA_ERROR_HARDWARE_STACK_ERROR:
	case CUDA_ERROR_ILLEGAL_INSTRUCTION:
	case CUDA_ERROR_MISALIGNED_ADDRESS:
	case CUDA_ERROR_INVALID_ADDRESS_SPACE:
	case CUDA_ERROR_INVALID_PC:
	case CUDA_ERROR_LAUNCH_FAILED:
		return true;
	default:
		return false;
	}
}

/*
 * Logs one line per process, for GPUs only: their driver logs nothing, and the software device
 * reports errors of kernels itself.
 */
static __attribute__((noinline)) void failure_log(const struct obf_ctx *ctx, CUresult result)
{
	static atomic_flag logged = ATOMIC_FLAG_INIT;
	const struct obf_device *device = obf_device_at(ctx->device);
	const char *name = "?";

	if (!device || device->ptx_only || atomic_flag_test_and_set(&logged))
		return;
	obf_cuGetErrorName(result, &name);
	ob_warn("a kernel failed on the device: error %d (%s). The failed launch came before the "
		"call that returns this error; every later call returns it too. To get it at the "
		"launch itself, use 'outboard run --sync'",
		(int)result, name);
}

void obf_ctx_note(struct obf_ctx *ctx, CUresult result)
{
	int healthy = 0;

	if (ob_unlikely(result != CUDA_SUCCESS) && is_sticky(result) &&
		atomic_compare_exchange_strong(&ctx->sticky, &healthy, (int)result))
		failure_log(ctx, result);
}

CUresult obf_ctx_failed(struct obf_ctx *ctx, CUresult result)
{
	obf_ctx_note(ctx, result);
	obf_ctx_report(ctx);
	return result;
}

CUresult obf_context_check(struct obf_context *context)
{
	if (ob_unlikely(!atomic_load_explicit(&context->pub.active, memory_order_acquire)))
		return context->was_active ? CUDA_ERROR_CONTEXT_IS_DESTROYED
					   : CUDA_ERROR_INVALID_CONTEXT;
	return obf_ctx_report(&context->pub);
}

CUresult obf_ctx_enter(struct obf_ctx **ret)
{
	const struct stack_row *row;
	CUresult result = obf_started();

	*ret = NULL;
	if (ob_likely(result == CUDA_SUCCESS) && obf_process.backend->alive)
		result = obf_process.backend->alive();
	if (ob_unlikely(result != CUDA_SUCCESS))
		return result;
	if (ob_unlikely(stack.depth == 0))
		return CUDA_ERROR_INVALID_CONTEXT;
	row = stack_row_at(stack.depth - 1);
	if (row_stale(row))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*ret = &row->context->pub;
	return obf_context_check(row->context);
}

CUresult obf_context_within(struct obf_context *context, CUresult (*fn)(struct obf_ctx *ctx))
{
	CUresult result;

	if (obf_ctx_peek() == &context->pub)
		return fn(&context->pub);
	result = obf_stack_push(context);
	if (result != CUDA_SUCCESS)
		return result;
	result = fn(&context->pub);
	obf_stack_pop(NULL);
	return result;
}

CUresult obf_ctx_run(
	struct obf_ctx *ctx, CUresult (*fn)(struct obf_ctx *ctx, void *user), void *user)
{
	CUresult result;

	if (obf_ctx_peek() == ctx)
		return fn(ctx, user);
	result = obf_stack_push(obf_context_of(ctx));
	if (result != CUDA_SUCCESS)
		return result;
	result = fn(ctx, user);
	obf_stack_pop(NULL);
	return result;
}

CUresult obf_ctx_settle(struct obf_ctx *ctx)
{
	struct obf_context *context = obf_context_of(ctx);
	CUresult result = obf_context_check(context);

	/*
	 * CUDA's exit handlers run before those that unload code, so exit never waits for a kernel.
	 */
	if (result != CUDA_SUCCESS || atomic_load(&obf_process.exiting))
		return result;
	return obf_context_within(context, obf_process.backend->ctx_settle);
}

struct obf_ctx *obf_ctx_peek(void)
{
	const struct stack_row *row;

	if (stack.depth == 0)
		return NULL;
	row = stack_row_at(stack.depth - 1);
	return row_stale(row) ? NULL : &row->context->pub;
}

CUresult obf_context_find(CUcontext handle, struct obf_context **ret)
{
	CUresult result;
	CUcontext top;

	if (handle) {
		*ret = ob_ids_get(&ctx_ids, (uint64_t)(uintptr_t)handle);
		if (!*ret)
			*ret = obf_green_primary(handle);
		return *ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
	}
	result = obf_stack_top(ret, &top);
	if (result == CUDA_SUCCESS && !*ret)
		return CUDA_ERROR_INVALID_CONTEXT;
	return result;
}

struct obf_ctx *obf_ctx_from_handle(CUcontext handle)
{
	struct obf_context *context;

	return obf_context_find(handle, &context) == CUDA_SUCCESS ? &context->pub : NULL;
}
