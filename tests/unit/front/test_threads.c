/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Several threads at once: what must happen once does, and readers beside writers see whole things.
 * Worth most under ThreadSanitizer.
 */
#include <pthread.h>

#include "front.h"
#include "tests/fatbin.h"

enum { THREADS = 8, ROUNDS = 2000 };

static pthread_barrier_t start_line;
static CUlibrary library;
static CUkernel kernel;
static struct obf_func *_Atomic seen;

static void race(void *(*run)(void *))
{
	pthread_t threads[THREADS];

	OK(pthread_barrier_init(&start_line, NULL, THREADS));
	for (uintptr_t i = 0; i < THREADS; i++)
		OK(pthread_create(&threads[i], NULL, run, (void *)i));
	for (int i = 0; i < THREADS; i++)
		OK(pthread_join(threads[i], NULL));
}

static void *start_all(void *arg)
{
	CUcontext ctx;

	(void)arg;
	pthread_barrier_wait(&start_line);
	OK(obf_cuInit(0));
	OK(obf_cuDevicePrimaryCtxRetain(&ctx, 0));
	OK(obf_cuCtxSetCurrent(ctx));
	OK(obf_cuCtxSynchronize());
	return NULL;
}

TEST(one_start)
{
	fake_attach(NULL, 0);
	race(start_all);
	CHECK(fake.starts == 1 && fake.creates == 1);
	for (int i = 0; i < THREADS; i++)
		OK(obf_cuDevicePrimaryCtxRelease_v2(0));
	CHECK(fake.destroys == 1);
}

static void *use_kernel(void *arg)
{
	struct obf_func *func, *none = NULL;
	struct obf_ctx *ctx;
	CUkernel mine;

	(void)arg;
	OK(obf_cuCtxSetCurrent(obf_ctx_primary(0)->handle));
	OK(obf_ctx_enter(&ctx));
	pthread_barrier_wait(&start_line);
	OK(obf_cuLibraryGetKernel(&mine, library, "first"));
	OK(obf_func_resolve((CUfunction)(void *)mine, ctx, &func));
	CHECK(atomic_compare_exchange_strong(&seen, &none, func) || none == func);
	CHECK(func->param_bytes == 24 && func->backend_id != 0);
	return NULL;
}

TEST(one_load)
{
	void *fatbin = fatbin_new(FATBIN_PTX, 75, ptx_text, sizeof ptx_text);

	begin();
	for (int i = 0; i < 50; i++) {
		int loads = fake.loads;

		seen = NULL;
		OK(obf_cuLibraryLoadData(&library, fatbin, NULL, NULL, 0, NULL, NULL, 0));
		race(use_kernel);
		CHECK(fake.loads == loads + 1 && fake.func_gets == i + 1);
		OK(obf_cuLibraryUnload(library));
	}
	free(fatbin);
}

static void *allocate(void *arg)
{
	uint64_t base = ((uintptr_t)arg + 1) << 32;
	struct obf_mem mem, got;

	pthread_barrier_wait(&start_line);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		mem = (struct obf_mem){
			.base = base + (i % 64) * 0x1000, .size = 0x1000, .kind = OBF_MEM_DEVICE
		};
		if (i >= 64)
			CHECK(obf_mem_remove(mem.base, &got) && got.size == 0x1000);
		CHECK(obf_mem_insert(&mem));
		CHECK(obf_mem_find(mem.base + 7, &got) && got.buffer_id == mem.buffer_id);
	}
	return NULL;
}

TEST(one_map)
{
	race(allocate);
	for (uint64_t t = 0; t < THREADS; t++)
		for (uint64_t i = 0; i < 64; i++)
			CHECK(obf_mem_remove(((t + 1) << 32) + i * 0x1000, NULL));
}

static void *contexts(void *arg)
{
	CUcontext ctx, got;
	struct obf_func *func;
	struct obf_ctx *entered;

	(void)arg;
	pthread_barrier_wait(&start_line);
	for (int i = 0; i < 100; i++) {
		OK(obf_cuCtxCreate_v2(&ctx, 0, i & 1));
		OK(obf_ctx_enter(&entered));
		OK(obf_func_resolve((CUfunction)(void *)kernel, entered, &func));
		CHECK(func->mod->ctx == entered && entered->handle == ctx);
		OK(obf_cuCtxPopCurrent_v2(&got));
		CHECK(got == ctx);
		OK(obf_cuCtxDestroy_v2(ctx));
		CHECK_INT(obf_cuCtxPushCurrent_v2(ctx), CUDA_ERROR_INVALID_CONTEXT);
	}
	return NULL;
}

TEST(contexts_come_and_go)
{
	begin();
	OK(obf_cuLibraryLoadData(&library, ptx_text, NULL, NULL, 0, NULL, NULL, 0));
	OK(obf_cuLibraryGetKernel(&kernel, library, "first"));
	race(contexts);
	CHECK(fake.creates == 1 + 100 * THREADS && fake.destroys == 100 * THREADS &&
		fake.unloads == 100 * THREADS);
}

static const CUuuid storage_id = {
	"\xc6\x93\x33\x6e\x11\x21\xdf\x11\xa8\xc3\x68\xf3\x55\xd8\x95\x93"
};
static CUresult (*put)(CUcontext, void *, void *, void *);
static CUresult (*take)(CUcontext, void *);
static CUresult (*get)(void **, CUcontext, void *);

/* Half of the threads read keys that stay while the others make and delete theirs. */
static void *store(void *arg)
{
	CUcontext ctx = obf_ctx_primary(0)->handle;
	uintptr_t key = 1 + (uintptr_t)arg;
	void *value;

	if (!(key & 1))
		OK(put(ctx, (void *)key, (void *)(key * 10), NULL));
	pthread_barrier_wait(&start_line);
	for (int i = 0; i < ROUNDS; i++) {
		if (key & 1)
			OK(put(ctx, (void *)(key + 100), (void *)((key + 100) * 10), NULL));
		OK(get(&value, ctx, (void *)(key & 1 ? key + 100 : key)));
		CHECK((uintptr_t)value == (key & 1 ? key + 100 : key) * 10);
		if (key & 1)
			OK(take(ctx, (void *)(key + 100)));
	}
	return NULL;
}

TEST(one_storage)
{
	const void *table;

	begin();
	OK(obf_cuGetExportTable(&table, &storage_id));
	memcpy(&put, table, sizeof put);
	memcpy(&take, (const char *)table + 8, sizeof take);
	memcpy(&get, (const char *)table + 16, sizeof get);
	race(store);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
