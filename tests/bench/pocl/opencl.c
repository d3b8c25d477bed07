/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The kernels of kernels.h with OpenCL, for tools/dev/beside-pocl. argv[1]: the path of kernels.h. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "workload.h"

static cl_command_queue queue;
static cl_mem buffers[BUFFERS];
static cl_kernel kernels[KERNELS];

static void check(cl_int result, const char *what)
{
	if (result == CL_SUCCESS)
		return;
	fprintf(stderr, "%s: OpenCL error %d\n", what, result);
	exit(1);
}

static void load(const void *x, const void *y)
{
	check(clEnqueueWriteBuffer(queue, buffers[1], CL_TRUE, 0, BUFFER_BYTES, x, 0, NULL, NULL),
		"copy");
	check(clEnqueueWriteBuffer(queue, buffers[2], CL_TRUE, 0, BUFFER_BYTES, y, 0, NULL, NULL),
		"copy");
}

static void clear(void)
{
	static const char zero[CLEARED];

	check(clEnqueueWriteBuffer(queue, buffers[0], CL_TRUE, 0, CLEARED, zero, 0, NULL, NULL),
		"clear");
	check(clFinish(queue), "wait");
}

static void read_back(void *out)
{
	check(clEnqueueReadBuffer(queue, buffers[0], CL_TRUE, 0, BUFFER_BYTES, out, 0, NULL, NULL),
		"copy back");
}

static void run(int k)
{
	const struct workload *w = &workloads[k];
	size_t global[2] = { w->x, w->y }, local[2] = { w->bx, w->by };

	check(clEnqueueNDRangeKernel(queue, kernels[k], 2, NULL, global, local, 0, NULL, NULL),
		"launch");
	check(clFinish(queue), "wait");
}

/* Sets the arguments of all kernels: buffers, n, and one number more. */
static void set_arguments(int k)
{
	/* indices of the buffers */
	static const char *const arguments[KERNELS] = { "012", "012", "01", "0312", "01", "01",
		"01", "0", "01" };
	cl_int more[KERNELS] = { 0 }, n = workloads[k].n;
	cl_uint i = 0;

	more[REDUCTION] = more[HISTOGRAM] = THREADS;
	more[MANDELBROT] = 256;
	more[HASH] = 64;
	for (const char *at = arguments[k]; *at; at++)
		check(clSetKernelArg(kernels[k], i++, sizeof(cl_mem), &buffers[*at - '0']),
			"argument");
	check(clSetKernelArg(kernels[k], i++, sizeof(n), &n), "argument");
	if (more[k])
		check(clSetKernelArg(kernels[k], i++, sizeof(more[k]), &more[k]), "argument");
}

static cl_program build(cl_context context, cl_device_id device, const char *path)
{
	static char text[1 << 16], log[1 << 14];
	const char *source = text;
	FILE *f = fopen(path, "r");
	size_t size;
	cl_int result;
	cl_program program;

	if (!f) {
		fprintf(stderr, "cannot read %s: give the path of kernels.h\n", path);
		exit(1);
	}
	size = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	program = clCreateProgramWithSource(context, 1, &source, &size, &result);
	check(result, "create program");
	result = clBuildProgram(program, 1, &device, "", NULL, NULL);
	if (result) {
		clGetProgramBuildInfo(
			program, device, CL_PROGRAM_BUILD_LOG, sizeof(log) - 1, log, NULL);
		fprintf(stderr, "%s\n", log);
	}
	check(result, "build");
	return program;
}

int main(int argc, char **argv)
{
	struct workload_device device = { load, clear, run, read_back };
	char name[256] = "", version[256] = "";
	cl_platform_id platform;
	cl_device_id id;
	cl_int result;

	check(clGetPlatformIDs(1, &platform, NULL), "find a platform");
	check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &id, NULL), "find a CPU device");
	clGetDeviceInfo(id, CL_DEVICE_NAME, sizeof(name), name, NULL);
	clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof(version), version, NULL);
	fprintf(stderr, "%s; %s\n", version, name);
	cl_context context = clCreateContext(NULL, 1, &id, NULL, NULL, &result);

	check(result, "create context");
	queue = clCreateCommandQueue(context, id, 0, &result);
	check(result, "create queue");
	for (int i = 0; i < BUFFERS; i++) {
		buffers[i] =
			clCreateBuffer(context, CL_MEM_READ_WRITE, BUFFER_BYTES, NULL, &result);
		check(result, "allocate");
	}
	cl_program program = build(context, id, argc > 1 ? argv[1] : "kernels.h");

	for (int k = 0; k < KERNELS; k++) {
		kernels[k] = clCreateKernel(program, workloads[k].name, &result);
		check(result, workloads[k].name);
		set_arguments(k);
	}
	return workload_answer(&device);
}
