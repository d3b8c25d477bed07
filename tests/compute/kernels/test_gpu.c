/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Drivers, devices, images and memory as the GPU parts of the kernels use them.
 *     test_kernels_gpu DRIVER     DRIVER is the software device's library; OUTBOARD_TEST_LIBCUDA
 *                                 overrides it
 */
#include "base/opt.h"
#include "compute/gpu/gpu.h"
#include "tests/test.h"

extern const unsigned char obk_base_image_start[], obk_base_image_end[];
static const char *const names[] = { "base_add", "base_fault" };
static struct obk_gpu_image image = { "the test", obk_base_image_start, obk_base_image_end, 2,
	names };
static struct obk_fault fault;

static struct obk_gpu *open_device(void)
{
	const struct obk_gpu_driver *driver;
	struct obk_gpu *gpu;

	CHECK_INT(
		obk_gpu_driver_open(getenv("OUTBOARD_TEST_LIBCUDA"), &driver, &fault), OB_ERR_NONE);
	if (driver->devices == 0)
		TEST_SKIP("the driver has no device");
	CHECK_INT(obk_gpu_open(driver, 0, &gpu, &fault), OB_ERR_NONE);
	return gpu;
}

TEST(a_kernel_runs)
{
	struct obk_gpu *gpu = open_device();
	unsigned a[1000], n = 1000, value = 7;
	struct obk_gpu_buffer buffer;
	struct obk_gpu_stats stats;
	const CUfunction *functions, *again;
	CUstream stream;

	CHECK(obk_gpu_info(gpu)->name[0] && obk_gpu_info(gpu)->major >= 7 &&
		obk_gpu_info(gpu)->memory);
	CHECK_INT(obk_gpu_enter(gpu, &fault), OB_ERR_NONE);
	CHECK_INT(obk_gpu_load(gpu, &image, &functions, &fault), OB_ERR_NONE);
	CHECK_INT(obk_gpu_load(gpu, &image, &again, &fault), OB_ERR_NONE);
	CHECK(functions == again);
	CHECK_INT(obk_gpu_stream_take(gpu, &stream, &fault), OB_ERR_NONE);
	CHECK_INT(obk_gpu_take(gpu, sizeof(a), &buffer, &fault), OB_ERR_NONE);
	for (unsigned i = 0; i < n; i++)
		a[i] = i;
	CHECK_INT(obk_gpu_write(gpu, stream, buffer.at, a, sizeof(a), &fault), OB_ERR_NONE);
	CHECK_INT(obk_gpu_zero(gpu, stream, buffer.at, 40, &fault), OB_ERR_NONE);
	CHECK_INT(obk_gpu_launch(gpu, stream, functions[0], (n + 127) / 128, 1, 128, 0,
			  (void *[]){ &n, &buffer.at, &value }, &fault),
		OB_ERR_NONE);
	CHECK_INT(obk_gpu_copy(gpu, stream, buffer.at, buffer.at + 400, 40, &fault), OB_ERR_NONE);
	CHECK_INT(obk_gpu_read(gpu, stream, a, buffer.at, sizeof(a), &fault), OB_ERR_NONE);
	for (unsigned i = 0; i < n; i++)
		CHECK_INT(a[i], i < 10 ? i + 107 : i + 7);
	obk_gpu_give(gpu, &buffer);
	obk_gpu_stream_give(gpu, stream);
	obk_gpu_stats(gpu, &stats);
	CHECK_INT(stats.launches, 1);
	CHECK_INT(stats.bytes_to, sizeof(a));
	CHECK_INT(stats.bytes_from, sizeof(a));
	obk_gpu_leave(gpu);
	obk_gpu_close(gpu);
}

struct adding {
	struct obk_gpu *gpu;
	CUfunction add;
	CUstream stream;
	CUdeviceptr at;
	unsigned calls;
};

/* Adds 1 to each number that was uploaded. */
static enum ob_err add_one(void *arg, size_t first, size_t bytes)
{
	struct adding *a = arg;
	unsigned n = (unsigned)(bytes / 4), one = 1;
	CUdeviceptr at = a->at + first;

	a->calls++;
	return obk_gpu_launch(a->gpu, a->stream, a->add, (n + 255) / 256, 1, 256, 0,
		(void *[]){ &n, &at, &one }, &fault);
}

/*
 * Four full pieces and a short one. Each piece is uploaded before the kernel that uses it runs, and
 * its staging buffer is not reused before its copy has finished.
 */
TEST(an_upload_in_pieces)
{
	struct adding a = { .gpu = open_device() };
	size_t bytes = 4 * OBK_GPU_PIECE + 400, n = bytes / 4;
	unsigned *x = malloc(bytes), *y = malloc(bytes);
	struct obk_gpu_buffer buffer;
	struct obk_gpu_stats stats;
	const CUfunction *functions;

	CHECK_INT(obk_gpu_enter(a.gpu, &fault), OB_ERR_NONE);
	CHECK_INT(obk_gpu_load(a.gpu, &image, &functions, &fault), OB_ERR_NONE);
	CHECK_INT(obk_gpu_stream_take(a.gpu, &a.stream, &fault), OB_ERR_NONE);
	CHECK_INT(obk_gpu_take(a.gpu, bytes, &buffer, &fault), OB_ERR_NONE);
	a.add = functions[0];
	a.at = buffer.at;
	for (unsigned round = 0; round < 3; round++) {
		ob_opt_set(OB_OPT_STAGE, round < 2);
		for (size_t i = 0; i < n; i++)
			x[i] = (unsigned)i * 2654435761u + round;
		a.calls = 0;
		CHECK_INT(obk_gpu_upload(a.gpu, a.stream, buffer.at, x, bytes, add_one, &a, &fault),
			OB_ERR_NONE);
		CHECK_INT(a.calls, round < 2 ? 5 : 1);
		CHECK_INT(obk_gpu_read(a.gpu, a.stream, y, buffer.at, bytes, &fault), OB_ERR_NONE);
		for (size_t i = 0; i < n; i++)
			x[i]++;
		CHECK(memcmp(x, y, bytes) == 0);
	}
	obk_gpu_stats(a.gpu, &stats);
	CHECK_INT(stats.pieces, 10);
	CHECK_INT(stats.bytes_to, 3 * bytes);
	obk_gpu_give(a.gpu, &buffer);
	obk_gpu_stream_give(a.gpu, a.stream);
	obk_gpu_leave(a.gpu);
	obk_gpu_close(a.gpu);
	free(x);
	free(y);
}

TEST(memory_is_used_again)
{
	struct obk_gpu *gpu = open_device();
	struct obk_gpu_buffer a, b, c, none = { 0 };
	struct obk_gpu_stats stats;
	size_t room, less;
	CUdeviceptr at;

	CHECK_INT(obk_gpu_enter(gpu, &fault), OB_ERR_NONE);
	CHECK_INT(obk_gpu_take(gpu, 100000, &a, &fault), OB_ERR_NONE);
	CHECK_INT(obk_gpu_take(gpu, 1 << 20, &b, &fault), OB_ERR_NONE);
	CHECK(a.bytes >= 100000 && b.bytes >= 1 << 20 && a.at != b.at);
	at = a.at;
	obk_gpu_give(gpu, &a);
	CHECK(a.at == 0);
	CHECK_INT(obk_gpu_take(gpu, 99000, &c, &fault), OB_ERR_NONE);
	CHECK(c.at == at);
	obk_gpu_give(gpu, &c);
	/* the free buffer is not reused for a much smaller size */
	CHECK_INT(obk_gpu_take(gpu, 1000, &c, &fault), OB_ERR_NONE);
	CHECK(c.at != at);
	obk_gpu_stats(gpu, &stats);
	CHECK_INT(stats.taken, 4);
	CHECK_INT(stats.reused, 1);
	CHECK_INT(stats.in_use, b.bytes + c.bytes);
	CHECK(stats.idle >= 100000 && stats.high_water >= 100000 + (1 << 20));
	obk_gpu_trim(gpu);
	obk_gpu_stats(gpu, &stats);
	CHECK_INT(stats.idle, 0);
	obk_gpu_give(gpu, &none);
	CHECK_INT(obk_gpu_take(gpu, 0, &a, &fault), OB_ERR_NONE);
	CHECK(a.at == 0 && a.bytes == 0);
	CHECK_INT(obk_gpu_room(gpu, &room, &fault), OB_ERR_NONE);
	CHECK_INT(obk_gpu_take(gpu, (size_t)1 << 60, &a, &fault), OB_ERR_NO_MEMORY);
	CHECK(strstr(fault.text, "CUDA_ERROR_OUT_OF_MEMORY"));
	CHECK_INT(obk_gpu_take(gpu, SIZE_MAX, &a, &fault), OB_ERR_LIMIT);
	obk_gpu_give(gpu, &c);
	CHECK_INT(obk_gpu_room(gpu, &less, &fault), OB_ERR_NONE);
	CHECK(less >= room);
	CHECK(!obk_gpu_lost(gpu));
	obk_gpu_leave(gpu);
	obk_gpu_close(gpu); /* frees b */
}

TEST(bad_drivers_devices_and_images_are_refused)
{
	static const char *const wrong[] = { "base_add", "base_missing" };
	const struct obk_gpu_driver *driver, *again;
	struct obk_gpu_image empty = image, lacking = image, damaged = image;
	struct obk_gpu *gpu = open_device();
	const CUfunction *functions;

	CHECK_INT(obk_gpu_driver_open("/nowhere/libcuda.so.1", &driver, &fault), OB_ERR_DRIVER);
	CHECK(strstr(fault.text, "nowhere"));
	CHECK_INT(obk_gpu_driver_open("libc.so.6", &driver, &fault), OB_ERR_DRIVER);
	CHECK(strstr(fault.text, "cuInit"));
	CHECK_INT(obk_gpu_driver_open("", &driver, &fault), OB_ERR_ARGUMENT);
	CHECK_INT(
		obk_gpu_driver_open(getenv("OUTBOARD_TEST_LIBCUDA"), &driver, &fault), OB_ERR_NONE);
	CHECK_INT(
		obk_gpu_driver_open(getenv("OUTBOARD_TEST_LIBCUDA"), &again, &fault), OB_ERR_NONE);
	CHECK(driver == again);
	CHECK_INT(obk_gpu_open(driver, driver->devices, &gpu, &fault), OB_ERR_NOT_FOUND);
	CHECK_INT(obk_gpu_enter(gpu, &fault), OB_ERR_NONE);
	empty.end = empty.start;
	CHECK_INT(obk_gpu_load(gpu, &empty, &functions, &fault), OB_ERR_UNSUPPORTED);
	CHECK(strstr(fault.text, "nvcc"));
	lacking.names = wrong;
	CHECK_INT(obk_gpu_load(gpu, &lacking, &functions, &fault), OB_ERR_DRIVER);
	CHECK(strstr(fault.text, "base_missing") && strstr(fault.text, "CUDA_ERROR_NOT_FOUND"));
	damaged.start = (const unsigned char *)"not an image";
	damaged.end = damaged.start + 12;
	CHECK(obk_gpu_load(gpu, &damaged, &functions, &fault) != OB_ERR_NONE);
	obk_gpu_leave(gpu);
	obk_gpu_close(gpu);
}

TEST(a_fault_of_a_kernel_loses_the_device)
{
	struct obk_gpu *gpu = open_device();
	const CUfunction *functions;
	CUdeviceptr nowhere = 16;

	CHECK_INT(obk_gpu_enter(gpu, &fault), OB_ERR_NONE);
	CHECK_INT(obk_gpu_load(gpu, &image, &functions, &fault), OB_ERR_NONE);
	CHECK_INT(
		obk_gpu_launch(gpu, NULL, functions[1], 1, 1, 1, 0, (void *[]){ &nowhere }, &fault),
		OB_ERR_NONE);
	CHECK_INT(obk_gpu_wait(gpu, NULL, &fault), OB_ERR_DRIVER);
	CHECK(obk_gpu_lost(gpu));
	obk_gpu_leave(gpu);
	obk_gpu_close(gpu);
}

int main(int argc, char **argv)
{
	if (getenv("OUTBOARD_TEST_LIBCUDA"))
		test_fds_allowed = 4096;
	else if (argc > 1)
		setenv("OUTBOARD_TEST_LIBCUDA", argv[1], 0);
	return test_main(1, argv);
}
