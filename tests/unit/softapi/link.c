/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* cuLink*: one input, several that need each other, clashes, and inputs that are none. */
#include "tests/unit/softapi/api.h"

#define HEAD ".version 7.5\n.target sm_75\n.address_size 64\n"
/*
 * twice(x) = 2 * x + bias, with a name of its own that the other module uses too; a comment holds a
 * brace: {
 */
static char callee[] =
	HEAD "// here is one { and a \"quote\n"
	     ".global .align 4 .u32 own = 100;\n"
	     ".visible .global .align 4 .u32 bias = 5;\n"
	     ".visible .func (.param .b32 r) twice(.param .b32 x)\n"
	     "{\n\t.reg .b32 a, b, o;\n\tld.param.u32 a, [x];\n\tadd.u32 a, a, a;\n\tld.global.u32 "
	     "b, [bias];\n\tadd.u32 a, a, b;\n"
	     "\tld.global.u32 o, [own];\n\tadd.u32 a, a, o;\n\tst.param.u32 [r], a;\n\tret;\n}\n"
	     ".weak .func (.param .b32 r) shared()\n{\n\tst.param.u32 [r], 1;\n\tret;\n}\n";
static char caller[] =
	HEAD ".extern .func (.param .b32 r) twice(.param .b32 x);\n"
	     ".extern .global .align 4 .u32 bias;\n"
	     ".global .align 4 .u32 own = 1000;\n"
	     ".weak .func (.param .b32 r) shared()\n{\n\tst.param.u32 [r], 2;\n\tret;\n}\n"
	     ".visible .entry k(.param .u64 p)\n"
	     "{\n\t.reg .b64 a;\n\t.reg .b32 v, b, o;\n\t.param .b32 in;\n\t.param .b32 out;\n"
	     "\tld.param.u64 a, [p];\n\tmov.u32 v, 21;\n\tst.param.b32 [in], v;\n"
	     "\tcall (out), twice, (in);\n\tld.param.b32 v, [out];\n"
	     "\tld.global.u32 b, [bias];\n\tadd.u32 v, v, b;\n\tld.global.u32 o, [own];\n\tadd.u32 "
	     "v, v, o;\n"
	     "\tst.global.u32 [a], v;\n\tret;\n}\n";

BARE_TEST(two)
{
	CUdeviceptr p = device_new(4);
	CUlinkState link = NULL;
	CUmodule m;
	CUfunction f;
	void *image = NULL;
	size_t size = 0;
	void *params[] = { &p };

	OK(FRONT(cuLinkCreate_v2)(0, NULL, NULL, &link));
	OK(FRONT(cuLinkAddData_v2)(
		link, CU_JIT_INPUT_PTX, caller, sizeof caller, "caller.ptx", 0, NULL, NULL));
	OK(FRONT(cuLinkAddData_v2)(
		link, CU_JIT_INPUT_PTX, callee, strlen(callee), "callee.ptx", 0, NULL, NULL));
	OK(FRONT(cuLinkComplete)(link, &image, &size));
	CHECK(image != NULL && size > 0);
	OK(FRONT(cuModuleLoadData)(&m, image));
	OK(FRONT(cuLinkDestroy)(link));
	if (soft())
		CHECK_INT(FRONT(cuLinkDestroy)(link), CUDA_ERROR_INVALID_HANDLE);
	OK(FRONT(cuModuleGetFunction)(&f, m, "k"));
	OK(FRONT(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CHECK_INT(device_u32(p), (2 * 21 + 5 + 100) + 5 + 1000);
	OK(FRONT(cuModuleUnload)(m));
	OK(FRONT(cuMemFree_v2)(p));
}

BARE_TEST(clash)
{
	CUlinkState link;
	void *image;
	size_t size;
	char log[400] = "";
	CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { log, (void *)(uintptr_t)sizeof log };

	OK(FRONT(cuLinkCreate_v2)(2, options, values, &link));
	OK(FRONT(cuLinkAddData_v2)(
		link, CU_JIT_INPUT_PTX, callee, sizeof callee, "one", 0, NULL, NULL));
	OK(FRONT(cuLinkAddData_v2)(
		link, CU_JIT_INPUT_PTX, callee, sizeof callee, "other", 0, NULL, NULL));
	CHECK_INT(FRONT(cuLinkComplete)(link, &image, &size), CUDA_ERROR_INVALID_PTX);
	CHECK(strstr(log, "bias") && strstr(log, "other"));
	OK(FRONT(cuLinkDestroy)(link));
}

BARE_TEST(refused)
{
	CUlinkState link;
	void *image;
	size_t size;
	char junk[] = "this is not PTX {";

	OK(FRONT(cuLinkCreate_v2)(0, NULL, NULL, &link));
	CHECK_INT(FRONT(cuLinkComplete)(link, &image, &size),
		CUDA_ERROR_INVALID_VALUE); /* nothing in it */
	CHECK_INT(FRONT(cuLinkAddData_v2)(
			  link, CU_JIT_INPUT_OBJECT, junk, sizeof junk, NULL, 0, NULL, NULL),
		CUDA_ERROR_NOT_SUPPORTED);
	CHECK_INT(FRONT(cuLinkAddData_v2)(link, CU_JIT_INPUT_PTX, NULL, 5, NULL, 0, NULL, NULL),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(FRONT(cuLinkAddFile_v2)(
			  link, CU_JIT_INPUT_PTX, "/nowhere/at/all.ptx", 0, NULL, NULL),
		CUDA_ERROR_FILE_NOT_FOUND);
	OK(FRONT(cuLinkAddData_v2)(link, CU_JIT_INPUT_PTX, junk, sizeof junk, NULL, 0, NULL, NULL));
	CHECK_INT(FRONT(cuLinkComplete)(link, &image, &size), CUDA_ERROR_INVALID_PTX);
	OK(FRONT(cuLinkDestroy)(link));
}

int main(int argc, char **argv)
{
	return library_main(argc, argv);
}
