/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A program for managed.py. It uses managed memory with fills and copies of the device, and pinned
 * memory with a kernel in PTX.
 *
 *   turns N   the program and the device write in turn, N times, and the sum is printed
 *   lost      prints "ready", waits for a line, and reads what only the device has
 *   file PATH reads a file into managed memory with read(2), before and after the device had it
 *   functions N
 *             kernels and host functions change pinned memory in turn, N times; the sum is printed
 *   fork      a child reads and writes memory that the parent uses
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cuda_types.h"

#define WORDS (300u << 10)

static CUresult (*init)(unsigned), (*retain)(CUcontext *, CUdevice), (*set)(CUcontext);
static CUresult (*alloc)(CUdeviceptr *, size_t, unsigned), (*fill)(CUdeviceptr, unsigned, size_t);
static CUresult (*pinned)(void **, size_t, unsigned), (*load)(CUmodule *, const void *);
static CUresult (*find)(CUfunction *, CUmodule, const char *);
static CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
	unsigned, CUstream, void **, void **);
static CUresult (*on_host)(CUstream, CUhostFn, void *);
static CUresult (*copy)(CUdeviceptr, CUdeviceptr, size_t), (*synchronize)(void);

static void *entry(void *library, const char *name)
{
	void *at = dlsym(library, name);

	if (!at) {
		fprintf(stderr, "no %s\n", name);
		exit(2);
	}
	return at;
}

static void must(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	fprintf(stderr, "%s: error %d\n", what, (int)result);
	exit(1);
}

static uint32_t *managed(void)
{
	CUdeviceptr p = 0;

	must(alloc(&p, WORDS * sizeof(uint32_t), CU_MEM_ATTACH_GLOBAL), "cuMemAllocManaged");
	return (uint32_t *)(uintptr_t)p; /* NOLINT(performance-no-int-to-ptr) */
}

static void begin(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	CUcontext ctx;

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	*(void **)&init = entry(library, "cuInit");
	*(void **)&retain = entry(library, "cuDevicePrimaryCtxRetain");
	*(void **)&set = entry(library, "cuCtxSetCurrent");
	*(void **)&alloc = entry(library, "cuMemAllocManaged");
	*(void **)&fill = entry(library, "cuMemsetD32_v2");
	*(void **)&copy = entry(library, "cuMemcpy");
	*(void **)&pinned = entry(library, "cuMemHostAlloc");
	*(void **)&load = entry(library, "cuModuleLoadData");
	*(void **)&find = entry(library, "cuModuleGetFunction");
	*(void **)&launch = entry(library, "cuLaunchKernel");
	*(void **)&on_host = entry(library, "cuLaunchHostFunc");
	*(void **)&synchronize = entry(library, "cuCtxSynchronize");
	must(init(0), "cuInit");
	must(retain(&ctx, 0), "cuDevicePrimaryCtxRetain");
	must(set(ctx), "cuCtxSetCurrent");
}

static void turns(int n)
{
	uint32_t *a = managed(), *b = managed();
	uint64_t sum = 0;

	for (int turn = 0; turn < n; turn++) {
		uint32_t at = (uint32_t)turn * 7919 % (WORDS - 5000);

		must(fill((uintptr_t)(a + at), (uint32_t)turn, 5000), "cuMemsetD32");
		for (uint32_t i = 0; i < WORDS; i += 9001)
			a[i] += i;
		must(copy((uintptr_t)b, (uintptr_t)a, WORDS * sizeof *a), "cuMemcpy");
		for (uint32_t i = 0; i < WORDS; i += 101)
			sum = sum * 31 + b[i];
	}
	printf("sum %llx\n", (unsigned long long)sum);
}

static void lost(void)
{
	uint32_t *a = managed();
	char line[16];

	a[0] = 1234;
	must(fill((uintptr_t)(a + 1), 7, WORDS - 1), "cuMemsetD32");
	must(synchronize(), "cuCtxSynchronize");
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof line, stdin))
		return;
	printf("read %u\n", a[0]);
	printf("error %d\n", synchronize() != CUDA_SUCCESS);
}

static void file(const char *path)
{
	uint32_t *a = managed();
	int fd = open(path, O_RDONLY), n;

	printf("fresh %d\n", (int)read(fd, a, 1000));
	must(fill((uintptr_t)a, 7, WORDS), "cuMemsetD32");
	must(synchronize(), "cuCtxSynchronize");
	lseek(fd, 0, SEEK_SET);
	a[0] = 0; /* touched first: the block is in this process */
	n = (int)read(fd, a, 1000);
	printf("touched %d %u\n", n, ((unsigned char *)a)[999]);
	must(fill((uintptr_t)a, 7, WORDS), "cuMemsetD32");
	lseek(fd, 0, SEEK_SET);
	n = (int)read(fd, a, 1000);
	printf("device %d %u\n", n, n > 0 ? ((unsigned char *)a)[999] : 0);
	close(fd);
}

/* p[i] = 3 * p[i] + i, for each thread of each block of 64 */
static const char kernel_text[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry step(.param .u64 at) {\n.reg .u32 %r<6>;\n.reg .u64 %d<4>;\n"
	"ld.param.u64 %d0, [at];\nmov.u32 %r0, %ctaid.x;\nmov.u32 %r1, %tid.x;\n"
	"mad.lo.u32 %r2, %r0, 64, %r1;\nmul.wide.u32 %d1, %r2, 4;\nadd.u64 %d2, %d0, %d1;\n"
	"ld.global.u32 %r3, [%d2];\nmad.lo.u32 %r4, %r3, 3, %r2;\nst.global.u32 [%d2], %r4;\n"
	"ret;\n}\n";

static uint64_t functions_sum;

static void sum_and_change(void *user)
{
	uint32_t *p = user;

	for (uint32_t i = 0; i < 64 * 64; i++)
		functions_sum = functions_sum * 31 + p[i];
	for (uint32_t i = 0; i < 64 * 64; i += 100)
		p[i] ^= i;
}

static void functions(int n)
{
	CUfunction function;
	CUmodule module;
	void *p = NULL;
	void *params[] = { &p };

	must(load(&module, kernel_text), "cuModuleLoadData");
	must(find(&function, module, "step"), "cuModuleGetFunction");
	must(pinned(&p, 64 * 64 * sizeof(uint32_t), 0), "cuMemHostAlloc");
	memset(p, 0, 64 * 64 * sizeof(uint32_t));
	for (int turn = 0; turn < n; turn++) {
		must(launch(function, 64, 1, 1, 64, 1, 1, 0, NULL, params, NULL), "cuLaunchKernel");
		must(on_host(NULL, sum_and_change, p), "cuLaunchHostFunc");
	}
	must(synchronize(), "cuCtxSynchronize");
	printf("sum %llx\n", (unsigned long long)functions_sum);
}

static void in_child(void)
{
	uint32_t *a = managed();
	int status = 0;
	pid_t child;

	a[0] = 1;
	fflush(stdout);
	child = fork();
	if (child == 0) {
		a[0] = 2; /* no memory is there */
		_exit(0);
	}
	waitpid(child, &status, 0);
	printf("child %d parent %u\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0, a[0]);
	must(fill((uintptr_t)a, 5, WORDS), "cuMemsetD32");
	printf("parent %u\n", a[0]);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	begin();
	if (strcmp(argv[1], "turns") == 0)
		turns((int)strtol(argv[2], NULL, 10));
	else if (strcmp(argv[1], "functions") == 0)
		functions((int)strtol(argv[2], NULL, 10));
	else if (strcmp(argv[1], "lost") == 0)
		lost();
	else if (strcmp(argv[1], "file") == 0)
		file(argv[2]);
	else
		in_child();
	return 0;
}
