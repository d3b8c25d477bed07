/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Modules that cannot be loaded, names that do not exist, wrong handles and arguments; names of
 * errors.
 */
#include "driver.h"

int main(void)
{
	static const char HEADER[] = ".version 7.0\n.target sm_75\n.address_size 64\n";
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction function;
	CUdeviceptr p;
	size_t size = 0;
	const char *text = NULL;
	char source[512];

	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuCtxCreate(&context, NULL, 0, device));

	CUresult status = cuModuleLoadData(&module, "this is no code at all, only some text");
	code_note("no code at all", (int)status);
	OK(status == CUDA_ERROR_INVALID_IMAGE || status == CUDA_ERROR_INVALID_PTX);
	snprintf(source, sizeof(source),
		"%s.visible .entry f()\n{\n\tno.such.instruction %%r1;\n}\n", HEADER);
	EXPECT(CUDA_ERROR_INVALID_PTX, cuModuleLoadData(&module, source));
	snprintf(source, sizeof(source),
		"%s.visible .entry f()\n{\n\tmov.u32 %%r1, 0;\n\tret;\n}\n", HEADER);
	EXPECT(CUDA_ERROR_INVALID_PTX, cuModuleLoadData(&module, source));
	EXPECT(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&module, "/no/such/file.ptx"));
	/* Machine code without PTX, for a device other than the one under test. */
	void *machine_code = read_beside("driver_kernels.sass.fatbin");
	EXPECT(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&module, machine_code));
	free(machine_code);

	/* Loading with a log, and a valid module. */
	char log[1000] = "", errors[1000] = "";
	CUjit_option options[] = { CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
		CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { log, (void *)sizeof(log), errors, (void *)sizeof(errors) };
	snprintf(source, sizeof(source), "%s.visible .entry f()\n{\n\tbogus;\n}\n", HEADER);
	EXPECT(CUDA_ERROR_INVALID_PTX, cuModuleLoadDataEx(&module, source, 4, options, values));
	OK(errors[0] != 0);
	values[1] = (void *)sizeof(log);
	values[3] = (void *)sizeof(errors);
	snprintf(source, sizeof(source),
		"%s.visible .global .align 4 .b8 g[12];\n.visible .entry f()\n{\n\tret;\n}\n",
		HEADER);
	CU(cuModuleLoadDataEx(&module, source, 4, options, values));
	CU(cuModuleGetFunction(&function, module, "f"));
	EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&function, module, "g"));
	EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&p, &size, module, "f"));
	CU(cuModuleGetGlobal(&p, &size, module, "g"));
	OK(size == 12);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
	CU(cuModuleGetFunction(&function, module, "f"));
	CU(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	CU(cuCtxSynchronize());
	CU(cuModuleUnload(module));

	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&p, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(NULL, 16));
	EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&p, (size_t)1 << 60));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree(0x1234));
	CU(cuMemFree(0));

	/* Names and descriptions. */
	static const struct {
		CUresult error;
		const char *name;
	} NAMES[] = {
		{ CUDA_SUCCESS, "CUDA_SUCCESS" },
		{ CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE" },
		{ CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY" },
		{ CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX" },
		{ CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS" },
		{ CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED" },
		{ CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY" },
		{ CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN" },
	};
	for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
		CU(cuGetErrorName(NAMES[i].error, &text));
		OK(!strcmp(text, NAMES[i].name));
		CU(cuGetErrorString(NAMES[i].error, &text));
		OK(text && text[0]);
	}
	CU(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
	printf("%s\n", text);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGetErrorName((CUresult)123456, &text));
	OK(text == NULL);
	CU(cuCtxDestroy(context));
	return verdict("driver_errors");
}
