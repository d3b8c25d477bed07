/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * printf on the device: every conversion, strings, many arguments, the return value, and unbroken
 * lines from many threads.
 */
#include <unistd.h>

#include "check.h"

__global__ void conversions(const char *)
{
	float f = 3.14159274f;
	double d = -2.5e-7;
	long long l = -1234567890123456789ll;

	printf("int %d %5d|%-5d|%05d %+d %i\n", -42, 42, 42, 42, 42, 7);
	printf("unsigned %u %x %X %o %#x\n", 4000000000u, 0xbeefu, 0xbeefu, 64u, 255u);
	printf("long %lld %llu %lx\n", l, 18446744073709551615ull, 0xfedcba9876543210ul);
	printf("char %c%c%c string [%s] [%8s] [%-8s] [%.2s]\n", 'c', 'u', '!', "device", "right",
		"left", "cut");
	printf("float %f %.2f %10.4f %e %g %G\n", f, f, f, d, d, 1e20);
	printf("percent %% and nothing else\n");
	printf("%d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %s %f\n", 1, 2, 3, 4, 5, 6, 7, 8, 9,
		10, 11, 12, 13, 14, 15, 16, "seventeen", 18.0);
}

__global__ void returned(int *out)
{
	out[0] = printf("returns the number of arguments\n");
	out[1] = printf("%d %s %f\n", 1, "two", 3.0);
}

__global__ void everybody(int base)
{
	int id = blockIdx.x * blockDim.x + threadIdx.x;

	if (id % 3 == 0)
		printf("thread %2d says %d\n", id, base + id * id);
}

#define MUCH_THREADS 500
#define MUCH_LINES   4

__global__ void much()
{
	for (int i = 0; i < MUCH_LINES; i++)
		printf("line %1d of thread %3d, which has a good deal to say and says all of it at "
		       "once\n",
			i, threadIdx.x);
}

/* More output than fits one message: every line of every thread arrives exactly once. */
static void much_at_once(void)
{
	static bool seen[MUCH_THREADS * MUCH_LINES];
	int line, thread, lines = 0, once = 0, saved = dup(STDOUT_FILENO);
	FILE *file = tmpfile();
	char text[200];

	fflush(stdout);
	OK(file && saved >= 0 && dup2(fileno(file), STDOUT_FILENO) == STDOUT_FILENO);
	much<<<1, MUCH_THREADS>>>();
	CU(cudaDeviceSynchronize());
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	rewind(file);
	while (fgets(text, sizeof(text), file)) {
		lines++;
		if (sscanf(text,
			    "line %d of thread %d, which has a good deal to say and says all of it "
			    "at once",
			    &line, &thread) == 2 &&
			line >= 0 && line < MUCH_LINES && thread >= 0 && thread < MUCH_THREADS &&
			!seen[thread * MUCH_LINES + line]) {
			seen[thread * MUCH_LINES + line] = true;
			once++;
		}
	}
	fclose(file);
	close(saved);
	OK(lines == MUCH_THREADS * MUCH_LINES && once == lines);
}

int main()
{
	int got[2], *out;

	conversions<<<1, 1>>>(nullptr);
	CU(cudaDeviceSynchronize());
	CU(cudaMalloc(&out, sizeof(got)));
	returned<<<1, 1>>>(out);
	CU(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	OK(got[0] == 0 && got[1] == 3);
	everybody<<<3, 40>>>(100);
	CU(cudaDeviceSynchronize());
	fflush(stdout);
	much_at_once();
	return verdict("device_printf");
}
