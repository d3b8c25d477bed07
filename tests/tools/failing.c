/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A program that causes errors that must be reported to its user. Prints each CUresult on a line.
 *
 *   failing fault [N]   runs a kernel that writes to an invalid address, each in a new context
 *   failing ptx [N]     loads a module with invalid PTX
 *   failing image [N]   loads an image of this program that has machine code only
 *   failing sync [N]    waits for the device
 *
 * N: how many times, 2 by default.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cuda_types.h"

#define HEAD ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry "

static const char fault[] = HEAD "writes_to_nowhere()\n{\n\t.reg .u64 %rd<2>;\n\tmov.u64 %rd1, "
				 "16;\n\tst.global.u32 [%rd1], 1;\n\tret;\n}\n";
static const char wrong[] =
	HEAD "is_no_ptx()\n{\n\t.reg .u32 %r<4>;\n\tld.foo.u32 %r1, [%r2];\n\tret;\n}\n";

/* A fatbin with one entry: 64 zero bytes, declared as machine code for sm_86. */
static const struct {
	uint32_t magic;
	uint16_t version, header;
	uint64_t size;
	uint16_t kind, entry_version;
	uint32_t entry_header;
	uint64_t stored;
	uint8_t between[12];
	uint32_t arch;
	uint64_t name, flags;
	uint64_t unused[2];
	uint8_t code[64];
} image = { .magic = 0xba55ed50,
	.version = 1,
	.header = 16,
	.size = 128,
	.kind = 2,
	.entry_version = 0x101,
	.entry_header = 64,
	.stored = 64,
	.arch = 86,
	.flags = 0x11 };

_Static_assert(sizeof image == 144 && offsetof(__typeof__(image), arch) == 44 &&
		offsetof(__typeof__(image), flags) == 56,
	"a fatbin's layout");

static CUresult (*load)(CUmodule *, const void *), (*get)(CUfunction *, CUmodule, const char *),
	(*synchronize)(void), (*create)(CUcontext *, unsigned, CUdevice), (*destroy)(CUcontext);
static CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
	unsigned, CUstream, void **, void **);

static CUresult one(const char *what)
{
	CUfunction function;
	CUmodule module;
	CUresult result;

	if (strcmp(what, "ptx") == 0)
		return load(&module, wrong);
	if (strcmp(what, "image") == 0)
		return load(&module, &image);
	if (strcmp(what, "sync") == 0)
		return synchronize();
	result = load(&module, fault);
	if (!result)
		result = get(&function, module, "writes_to_nowhere");
	if (!result)
		result = launch(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	return result ? result : synchronize();
}

int main(int argc, char **argv)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	int times = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 2;
	CUresult (*init)(unsigned);
	CUcontext context = NULL;

	if (argc < 2 || !library)
		return 2;
	*(void **)&init = dlsym(library, "cuInit");
	*(void **)&create = dlsym(library, "cuCtxCreate_v2");
	*(void **)&destroy = dlsym(library, "cuCtxDestroy_v2");
	*(void **)&load = dlsym(library, "cuModuleLoadData");
	*(void **)&get = dlsym(library, "cuModuleGetFunction");
	*(void **)&launch = dlsym(library, "cuLaunchKernel");
	*(void **)&synchronize = dlsym(library, "cuCtxSynchronize");
	if (init(0) != CUDA_SUCCESS)
		return 3;
	for (int i = 0; i < times; i++) {
		bool own = i == 0 || strcmp(argv[1], "fault") == 0;

		if (own && i > 0)
			destroy(context);
		if (own && create(&context, 0, 0) != CUDA_SUCCESS)
			return 4;
		printf("%d\n", (int)one(argv[1]));
	}
	return 0;
}
