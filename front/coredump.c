/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * cuCoredump*: the settings of GPU coredumps, kept for the program. Nothing acts on them: a
 * coredump is written by the driver of the server, on the server's disk, if its administrator asks
 * for it there. One line is logged when a program turns coredumps on.
 *
 * As in CUDA, a variable of the environment fixes its setting, and a setting of a context replaces
 * that of the process in that context.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "front/private.h"
#include "protocol/obf_calls.h"

#define TEXT_BYTES 1024u /* with the NUL */
#define FLAGS_ALL  0x3fu

struct settings {
	uint64_t ctx_id; /* 0: of the process */
	unsigned set;    /* bit n: setting n was set */
	bool flag[CU_COREDUMP_MAX];
	unsigned generation;
	char file[TEXT_BYTES], pipe[TEXT_BYTES];
	struct settings *next;
};

/* By CUcoredumpSettings. */
static const char *const variables[CU_COREDUMP_MAX] = {
	[CU_COREDUMP_ENABLE_ON_EXCEPTION] = "CUDA_ENABLE_COREDUMP_ON_EXCEPTION",
	[CU_COREDUMP_TRIGGER_HOST] = "CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION",
	[CU_COREDUMP_LIGHTWEIGHT] = "CUDA_ENABLE_LIGHTWEIGHT_COREDUMP",
	[CU_COREDUMP_ENABLE_USER_TRIGGER] = "CUDA_ENABLE_USER_TRIGGERED_COREDUMP",
	[CU_COREDUMP_FILE] = "CUDA_COREDUMP_FILE",
	[CU_COREDUMP_PIPE] = "CUDA_COREDUMP_PIPE",
	[CU_COREDUMP_GENERATION_FLAGS] = "CUDA_COREDUMP_GENERATION_FLAGS",
};

/* Words of CUDA_COREDUMP_GENERATION_FLAGS; the n-th is bit n. */
static const char *const flag_names[] = { "skip_nonrelocated_elf_images", "skip_global_memory",
	"skip_shared_memory", "skip_local_memory", "skip_abort", "skip_constbank_memory" };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all below */
static struct settings process;
static struct settings *contexts; /* of contexts that have set something; kept after their end */
static bool ready;

static bool is_text(CUcoredumpSettings attr)
{
	return attr == CU_COREDUMP_FILE || attr == CU_COREDUMP_PIPE;
}

static size_t size_of(CUcoredumpSettings attr)
{
	return is_text(attr)                           ? TEXT_BYTES
		: attr == CU_COREDUMP_GENERATION_FLAGS ? sizeof(unsigned)
						       : sizeof(bool);
}

/* Fixed by the environment. */
static bool is_fixed(CUcoredumpSettings attr)
{
	return getenv(variables[attr]) != NULL;
}

static void defaults(void)
{
	const int switches[] = { CU_COREDUMP_ENABLE_ON_EXCEPTION, CU_COREDUMP_TRIGGER_HOST,
		CU_COREDUMP_LIGHTWEIGHT, CU_COREDUMP_ENABLE_USER_TRIGGER };
	char host[256] = "localhost";
	const char *text;

	if (ready)
		return;
	ready = true;
	gethostname(host, sizeof host - 1);
	text = getenv(variables[CU_COREDUMP_FILE]);
	if (text)
		snprintf(process.file, TEXT_BYTES, "%s", text);
	else
		snprintf(process.file, TEXT_BYTES, "core.cuda.%s.%d", host, (int)getpid());
	text = getenv(variables[CU_COREDUMP_PIPE]);
	if (text)
		snprintf(process.pipe, TEXT_BYTES, "%s", text);
	else
		snprintf(process.pipe, TEXT_BYTES, "corepipe.cuda.%s.%d", host, (int)getpid());
	text = getenv(variables[CU_COREDUMP_GENERATION_FLAGS]);
	for (unsigned i = 0; text && i < ob_count(flag_names); i++)
		if (strstr(text, flag_names[i]))
			process.generation |= 1u << i;
	process.flag[CU_COREDUMP_TRIGGER_HOST] = true;
	for (size_t i = 0; i < ob_count(switches); i++) {
		text = getenv(variables[switches[i]]);
		if (text)
			process.flag[switches[i]] = strcmp(text, "1") == 0;
	}
}

/* The settings of a context (0: of the process); make: also if it has set none. Under the lock. */
static struct settings *settings_of(uint64_t ctx_id, bool make)
{
	struct settings *own;

	if (ctx_id == 0)
		return &process;
	for (own = contexts; own; own = own->next)
		if (own->ctx_id == ctx_id)
			return own;
	own = make ? calloc(1, sizeof *own) : NULL;
	if (own) {
		own->ctx_id = ctx_id;
		own->next = contexts;
		contexts = own;
	}
	return own;
}

static void *place_of(struct settings *settings, CUcoredumpSettings attr)
{
	return attr == CU_COREDUMP_FILE                ? (void *)settings->file
		: attr == CU_COREDUMP_PIPE             ? (void *)settings->pipe
		: attr == CU_COREDUMP_GENERATION_FLAGS ? (void *)&settings->generation
						       : (void *)&settings->flag[attr];
}

/*
 * The checks of all four calls. *ret_done: the program has only asked for the size, which was
 * stored.
 */
static CUresult check(CUcoredumpSettings attr, const void *value, size_t *size, bool *ret_done)
{
	*ret_done = false;
	if ((int)attr < CU_COREDUMP_ENABLE_ON_EXCEPTION || (int)attr >= CU_COREDUMP_MAX || !size)
		return CUDA_ERROR_INVALID_VALUE;
	if (!value) {
		*size = size_of(attr);
		*ret_done = true;
	}
	return CUDA_SUCCESS;
}

static CUresult get(uint64_t ctx_id, CUcoredumpSettings attr, void *value, size_t *size)
{
	struct settings *own;
	bool done;
	CUresult result = check(attr, value, size, &done);

	if (result != CUDA_SUCCESS || done)
		return result;
	if (*size < size_of(attr))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	defaults();
	own = settings_of(ctx_id, false);
	if (!own || !(own->set & 1u << attr))
		own = &process;
	memcpy(value, place_of(own, attr), size_of(attr));
	pthread_mutex_unlock(&lock);
	*size = size_of(attr);
	return CUDA_SUCCESS;
}

static CUresult value_check(CUcoredumpSettings attr, const void *value, size_t size)
{
	unsigned flags;

	if (is_text(attr))
		return size > 0 && strnlen(value, ob_min(size, (size_t)TEXT_BYTES)) < TEXT_BYTES
			? CUDA_SUCCESS
			: CUDA_ERROR_INVALID_VALUE;
	if (size != size_of(attr))
		return CUDA_ERROR_INVALID_VALUE;
	if (attr != CU_COREDUMP_GENERATION_FLAGS)
		return CUDA_SUCCESS;
	memcpy(&flags, value, sizeof flags);
	return flags & ~FLAGS_ALL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static void put(struct settings *own, CUcoredumpSettings attr, const void *value, size_t size)
{
	void *place = place_of(own, attr);

	if (is_text(attr))
		snprintf(place, TEXT_BYTES, "%.*s", (int)ob_min(size, (size_t)TEXT_BYTES),
			(const char *)value);
	else if (attr == CU_COREDUMP_GENERATION_FLAGS)
		memcpy(place, value, sizeof(unsigned));
	else
		*(bool *)place = *(const unsigned char *)value != 0;
	own->set |= 1u << attr;
}

static CUresult set(uint64_t ctx_id, CUcoredumpSettings attr, const void *value, size_t *size)
{
	static atomic_flag logged = ATOMIC_FLAG_INIT;
	struct settings *own;
	bool done;
	CUresult result = check(attr, value, size, &done);

	if (result != CUDA_SUCCESS || done)
		return result;
	/* Of the process only. */
	if (ctx_id && (attr == CU_COREDUMP_ENABLE_USER_TRIGGER || attr == CU_COREDUMP_PIPE))
		return CUDA_ERROR_NOT_SUPPORTED;
	result = value_check(attr, value, *size);
	if (result != CUDA_SUCCESS || is_fixed(attr))
		return result;
	pthread_mutex_lock(&lock);
	defaults();
	own = settings_of(ctx_id, true);
	if (own)
		put(own, attr, value, *size);
	pthread_mutex_unlock(&lock);
	if (own &&
		(attr == CU_COREDUMP_ENABLE_ON_EXCEPTION ||
			attr == CU_COREDUMP_ENABLE_USER_TRIGGER) &&
		*(const unsigned char *)value && !atomic_flag_test_and_set(&logged))
		ob_warn("this program turns GPU coredumps on, which has no effect: the GPU is in "
			"another machine. To get coredumps there, set "
			"CUDA_ENABLE_COREDUMP_ON_EXCEPTION for the server");
	return own ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult obf_cuCoredumpGetAttribute(CUcoredumpSettings attr, void *value, size_t *size)
{
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	return result == CUDA_SUCCESS ? get(ctx->id, attr, value, size) : result;
}

CUresult obf_cuCoredumpSetAttribute(CUcoredumpSettings attr, void *value, size_t *size)
{
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	return result == CUDA_SUCCESS ? set(ctx->id, attr, value, size) : result;
}

CUresult obf_cuCoredumpGetAttributeGlobal(CUcoredumpSettings attr, void *value, size_t *size)
{
	CUresult result = obf_ready();

	return result == CUDA_SUCCESS ? get(0, attr, value, size) : result;
}

CUresult obf_cuCoredumpSetAttributeGlobal(CUcoredumpSettings attr, void *value, size_t *size)
{
	CUresult result = obf_ready();

	return result == CUDA_SUCCESS ? set(0, attr, value, size) : result;
}
