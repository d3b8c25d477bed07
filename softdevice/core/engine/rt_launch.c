/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/engine/rt_launch.h"

#include <stdio.h>
#include <string.h>

#include "softdevice/core/engine/family.h"
#include "softdevice/core/engine/fault.h"
#include "softdevice/core/engine/rt_words.h"

#define RUNTIME_VERSION     13000
#define STREAM_NON_BLOCKING 1u
#define EVENT_NO_TIMING     2u
#define COPY_KIND_MOST      4u

/* cudaError_t values that the driver has no counterpart of */
enum { ERROR_INVALID_CONFIGURATION = 9, ERROR_SYNC_DEPTH = 68, ERROR_INVALID_FUNCTION = 98 };

/* One lane's call. */
struct call {
	struct obd_warp *w;
	const struct obd_insn *in;
	char *regs;
	uint32_t lane;
};

static uint32_t word(const struct call *c, uint32_t index)
{
	return obd_rt_word(c->w, c->in, c->regs, index, c->lane);
}

static uint64_t wide(const struct call *c, uint32_t index)
{
	return obd_rt_wide(c->w, c->in, c->regs, index, c->lane);
}

/* Writes a result of the function to device memory. */
static void store(const struct call *c, uint64_t at, const void *value, uint32_t size)
{
	struct obd_warp *w = c->w;

	w->addr[c->lane] = at;
	w->mem_in = c->in;
	w->mem_mask = 1u << c->lane;
	if (at - w->window_base > w->window_size - size || at % size)
		obd_fault_access(w, c->in, 1u << c->lane, size, true, size - 1);
	if (w->memcheck)
		obd_fault_memcheck(w, c->in, 1u << c->lane, size, true);
	memcpy((void *)(uintptr_t)at, value, size);
}

/* ---- launches ---- */

static const struct obd_entry *entry_of(const struct obd_program *p, uint64_t address)
{
	uint64_t index = (address & ~(0xffffull << 48)) >> 4;

	if ((address >> 48) != OBD_CODE_TAG >> 48 || (address & 15) || index >= p->n_funcs)
		return NULL;
	for (uint32_t i = 0; i < p->n_entries; i++)
		if (p->entries[i].func == p->funcs[index])
			return &p->entries[i];
	return NULL;
}

static uint32_t error_of(CUresult result)
{
	/* a buffer fails for the grid's shape only: the runtime has a code of its own for it */
	return result == CUDA_ERROR_INVALID_VALUE ? ERROR_INVALID_CONFIGURATION : (uint32_t)result;
}

static uint32_t buffer(const struct call *c, uint64_t *ret)
{
	const struct obd_launch *l = c->w->cta->launch;
	const struct obd_entry *entry = entry_of(l->program, wide(c, 0));
	struct obd_grid grid = {
		.program = l->program, .abort = l->grid->abort, .limit = l->grid->limit
	};
	CUresult result;
	char what[110];

	*ret = 0;
	if (!entry)
		return ERROR_INVALID_FUNCTION;
	if (entry->pub.refused) {
		snprintf(what, sizeof(what), "launch of kernel %.30s: %.60s", entry->pub.name,
			entry->pub.refused);
		obd_fault_raise(c->w, c->in, 1u << c->lane, CUDA_ERROR_NOT_SUPPORTED, what);
	}
	grid.kernel = &entry->pub;
	grid.dynamic_shared = word(c, 8);
	for (uint32_t i = 0; i < 3; i++) {
		grid.grid[i] = word(c, 2 + i);
		grid.block[i] = word(c, 5 + i);
		grid.cluster[i] = 1;
	}
	if ((uint64_t)grid.block[0] * grid.block[1] * grid.block[2] > entry->pub.max_threads)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	*ret = (uint64_t)(uintptr_t)obd_family_buffer(c->w->cta, &grid, &result);
	return error_of(result);
}

/* ---- copies and fills ---- */

static bool in_window(const struct obd_warp *w, uint64_t at, const struct obd_rows *r, size_t pitch)
{
	size_t most = w->window_size;
	uint64_t o = at - w->window_base;

	if (!r->width || !r->height)
		return true;
	if (r->width > most || pitch > most || r->height > most || o > most)
		return false;
	if (r->height > 1 && (pitch < r->width || (r->height - 1) > most / pitch))
		return false;
	return (r->height - 1) * pitch + r->width <= most - o;
}

static uint32_t rows(const struct call *c, struct obd_rows *r, uint64_t stream)
{
	struct obd_warp *w = c->w;

	if (r->height > 1 && (r->to_pitch < r->width || (r->from && r->from_pitch < r->width)))
		return CUDA_ERROR_INVALID_VALUE;
	if (!in_window(w, r->to, r, r->to_pitch) ||
		(r->from && !in_window(w, r->from, r, r->from_pitch)))
		return CUDA_ERROR_INVALID_VALUE;
	if (!r->width || !r->height)
		return CUDA_SUCCESS;
	return (uint32_t)obd_family_rows(w->cta, r, stream);
}

static uint32_t copy(const struct call *c, bool two)
{
	struct obd_rows r = { .to = wide(c, 0), .height = 1 };
	uint32_t kind;
	uint64_t stream;

	if (two) {
		r.to_pitch = (size_t)wide(c, 2);
		r.from = wide(c, 4);
		r.from_pitch = (size_t)wide(c, 6);
		r.width = (size_t)wide(c, 8);
		r.height = (size_t)wide(c, 10);
		kind = word(c, 12);
		stream = wide(c, 13);
	} else {
		r.from = wide(c, 2);
		r.width = (size_t)wide(c, 4);
		kind = word(c, 6);
		stream = wide(c, 7);
	}
	if (kind > COPY_KIND_MOST)
		return 21; /* cudaErrorInvalidMemcpyDirection */
	return r.from || !r.width ? rows(c, &r, stream) : CUDA_ERROR_INVALID_VALUE;
}

static uint32_t fill(const struct call *c, bool two)
{
	struct obd_rows r = { .to = wide(c, 0), .height = 1 };

	if (!two) {
		r.value = (uint8_t)word(c, 2);
		r.width = (size_t)wide(c, 3);
		return rows(c, &r, wide(c, 5));
	}
	r.to_pitch = (size_t)wide(c, 2);
	r.value = (uint8_t)word(c, 4);
	r.width = (size_t)wide(c, 5);
	r.height = (size_t)wide(c, 7);
	return rows(c, &r, wide(c, 9));
}

/* ---- streams, events, memory, questions ---- */

static uint32_t handle_new(const struct call *c, bool is_event)
{
	uint64_t handle;

	/* as the programming guide says */
	if (is_event ? word(c, 2) != EVENT_NO_TIMING : word(c, 2) != STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	handle = obd_family_stream_new(c->w->cta, is_event);
	if (!handle)
		return CUDA_ERROR_OUT_OF_MEMORY;
	store(c, wide(c, 0), &handle, sizeof(handle));
	return CUDA_SUCCESS;
}

static uint32_t memory_new(const struct call *c)
{
	const struct obd_env *env = &c->w->cta->launch->program->env;
	uint64_t p = (uint64_t)(uintptr_t)env->heap_alloc(env->user, (size_t)wide(c, 2));

	store(c, wide(c, 0), &p, sizeof(p));
	return p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static uint32_t memory_free(const struct call *c)
{
	const struct obd_env *env = &c->w->cta->launch->program->env;

	if (wide(c, 0))
		env->heap_free(env->user, (void *)(uintptr_t)wide(c, 0));
	return CUDA_SUCCESS;
}

static uint32_t ask(const struct call *c, bool limit)
{
	const struct obd_env *env = &c->w->cta->launch->program->env;
	uint64_t value;
	uint32_t narrow;

	if (!limit && word(c, 3) != (uint32_t)env->ordinal)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!env->ask || !env->ask(env->user, limit, word(c, 2), &value))
		return limit ? CUDA_ERROR_UNSUPPORTED_LIMIT : CUDA_ERROR_INVALID_VALUE;
	narrow = (uint32_t)value;
	if (limit)
		store(c, wide(c, 0), &value, sizeof(value));
	else
		store(c, wide(c, 0), &narrow, sizeof(narrow));
	return CUDA_SUCCESS;
}

static uint32_t number_out(const struct call *c, int value)
{
	store(c, wide(c, 0), &value, sizeof(value));
	return CUDA_SUCCESS;
}

static uint64_t error_text(const struct call *c, bool name)
{
	static const struct {
		uint32_t error;
		const char *name, *text;
	} known[] = {
		{ 0, "cudaSuccess", "no error" },
		{ 1, "cudaErrorInvalidValue", "invalid argument" },
		{ 2, "cudaErrorMemoryAllocation", "out of memory" },
		{ 9, "cudaErrorInvalidConfiguration", "invalid configuration argument" },
		{ 21, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy" },
		{ 68, "cudaErrorSyncDepthExceeded",
			"launch failed because grids that wait for others are nested too "
			"deeply" },
		{ 69, "cudaErrorLaunchPendingCountExceeded",
			"launch failed because launch would exceed "
			"cudaLimitDevRuntimePendingLaunchCount" },
		{ 98, "cudaErrorInvalidDeviceFunction", "invalid device function" },
		{ 101, "cudaErrorInvalidDevice", "invalid device ordinal" },
		{ 215, "cudaErrorUnsupportedLimit", "limit is not supported on this architecture" },
		{ 400, "cudaErrorInvalidResourceHandle", "invalid resource handle" },
		{ 701, "cudaErrorLaunchOutOfResources", "too many resources requested for launch" },
	};
	const char *text = name ? "cudaErrorUnknown" : "unrecognized error code";

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].error == word(c, 0))
			text = name ? known[i].name : known[i].text;
	return (uint64_t)(uintptr_t)obd_family_text(c->w->cta, text);
}

/* Functions whose result is an error code. */
static uint32_t code_of(const struct call *c, enum obd_builtin function)
{
	struct obd_cta *cta = c->w->cta;

	switch (function) {
	case OBD_BUILTIN_LAUNCH:
		return (uint32_t)obd_family_launch(cta, (void *)(uintptr_t)wide(c, 0), wide(c, 2));
	case OBD_BUILTIN_STREAM_NEW:
		return handle_new(c, false);
	case OBD_BUILTIN_STREAM_FREE:
		return (uint32_t)obd_family_stream_free(cta, wide(c, 0), false);
	case OBD_BUILTIN_STREAM_WAIT:
		return (uint32_t)obd_family_wait(cta, wide(c, 0), wide(c, 2));
	case OBD_BUILTIN_EVENT_NEW:
		return handle_new(c, true);
	case OBD_BUILTIN_EVENT_FREE:
		return (uint32_t)obd_family_stream_free(cta, wide(c, 0), true);
	case OBD_BUILTIN_EVENT_RECORD:
		return (uint32_t)obd_family_record(cta, wide(c, 0), wide(c, 2));
	case OBD_BUILTIN_COPY:
	case OBD_BUILTIN_COPY_2D:
		return copy(c, function == OBD_BUILTIN_COPY_2D);
	case OBD_BUILTIN_FILL:
	case OBD_BUILTIN_FILL_2D:
		return fill(c, function == OBD_BUILTIN_FILL_2D);
	case OBD_BUILTIN_DEVICE_COUNT:
		/* device code sees the devices before its own, and its own */
		return number_out(c, cta->launch->program->env.ordinal + 1);
	case OBD_BUILTIN_DEVICE:
		return number_out(c, cta->launch->program->env.ordinal);
	case OBD_BUILTIN_ATTRIBUTE:
	case OBD_BUILTIN_LIMIT:
		return ask(c, function == OBD_BUILTIN_LIMIT);
	case OBD_BUILTIN_ALLOC:
		return memory_new(c);
	case OBD_BUILTIN_ALLOC_FREE:
		return memory_free(c);
	default:
		return number_out(c, RUNTIME_VERSION);
	}
}

bool obd_rt_launch_call(struct obd_warp *w, const struct obd_insn *in, const struct obd_func *f,
	char *regs, uint32_t m)
{
	uint32_t depth_error = 0;

	if (f->builtin == OBD_BUILTIN_BUFFER &&
		!obd_family_has_room(w->cta, (uint32_t)__builtin_popcount(m))) {
		w->worker->wants_help = true;
		return true;
	}
	if (f->builtin == OBD_BUILTIN_BLOCK_SYNC) {
		enum obd_family_wait_result wait = obd_family_block_wait(w->cta);

		if (wait == OBD_FAMILY_BUSY) {
			w->worker->wants_help = true;
			return true;
		}
		depth_error = wait == OBD_FAMILY_TOO_DEEP ? ERROR_SYNC_DEPTH : 0;
	}
	for (uint32_t r = m; r; r &= r - 1) {
		struct call c = { w, in, regs, (uint32_t)__builtin_ctz(r) };
		uint32_t *error = &w->errors[c.lane], code = 0;
		uint64_t result;

		switch (f->builtin) {
		case OBD_BUILTIN_BUFFER:
			code = buffer(&c, &result);
			break;
		case OBD_BUILTIN_BLOCK_SYNC:
			result = code = depth_error;
			break;
		case OBD_BUILTIN_ERROR_NAME:
		case OBD_BUILTIN_ERROR_TEXT:
			result = error_text(&c, f->builtin == OBD_BUILTIN_ERROR_NAME);
			break;
		case OBD_BUILTIN_LAST_ERROR:
		case OBD_BUILTIN_PEEK_ERROR:
			result = *error;
			if (f->builtin == OBD_BUILTIN_LAST_ERROR)
				*error = 0;
			break;
		default:
			result = code = code_of(&c, f->builtin);
		}
		if (code)
			*error = code;
		obd_rt_result(w, in, regs, 0, c.lane, (uint32_t)result);
		obd_rt_result(w, in, regs, 1, c.lane, (uint32_t)(result >> 32));
	}
	return false;
}
