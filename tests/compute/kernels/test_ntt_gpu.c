/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Transforms on a device, compared with the CPU's bit for bit.
 *     test_kernels_ntt_gpu DRIVER     DRIVER is the software device's library;
 *                                     OUTBOARD_TEST_LIBCUDA overrides it
 */
#include "compute/ntt/gpu.h"
#include "tests/compute/kernels/gpu_test.h"

static struct obk_ntt_gpu *domain;

static void start(void)
{
	open_device();
	check_ok(obk_ntt_gpu_new(gpu, &domain, &fault));
}

static void stop(void)
{
	obk_ntt_gpu_free(domain);
	obk_gpu_close(gpu);
}

static struct obk_fr *random_elements(size_t n)
{
	struct obk_fr *x = malloc(n * sizeof(*x));

	CHECK(x);
	for (size_t i = 0; i < n; i++) {
		uint64_t plain[4] = { random64(), random64(), random64(), random64() };

		obk_fr_from_plain(&x[i], plain);
	}
	return x;
}

static void compare(unsigned log_n, size_t batch, enum obk_ntt_direction direction,
	enum obk_ntt_order order, const struct obk_fr *coset)
{
	struct obk_ntt_job job = { .log_n = log_n,
		.direction = direction,
		.order = order,
		.batch = batch,
		.coset = coset };
	size_t bytes = batch * sizeof(struct obk_fr) << log_n;
	struct obk_fr *want = random_elements(batch << log_n), *have = malloc(bytes);

	memcpy(have, want, bytes);
	check_ok(obk_ntt_run(&job, want, &fault));
	check_ok(obk_ntt_gpu_run(domain, &job, have, &fault));
	if (memcmp(have, want, bytes))
		printf("2^%u x %zu, direction %d, order %d, coset %d\n", log_n, batch,
			(int)direction, (int)order, coset != NULL);
	CHECK(memcmp(have, want, bytes) == 0);
	free(want);
	free(have);
}

TEST(every_order_direction_and_coset)
{
	static const unsigned logs[] = { 0, 1, 2, 5, 11 };
	struct obk_fr coset;

	start();
	obk_fr_from_plain(&coset, (uint64_t[4]){ 7 });
	for (unsigned i = 0; i < sizeof(logs) / sizeof(logs[0]); i++) {
		for (unsigned which = 0; which < 16; which++)
			compare(logs[i], 1, which & 1, which >> 1 & 3, which >> 3 ? &coset : NULL);
	}
	stop();
}

TEST(every_size)
{
	struct obk_fr coset;

	start();
	obk_fr_from_plain(&coset, (uint64_t[4]){ 5, 6, 7, 8 });
	for (unsigned log_n = 1; log_n <= 13; log_n++)
		compare(log_n, 1, log_n & 1, log_n >> 1 & 3, log_n % 3 ? &coset : NULL);
	stop();
}

TEST(three_passes)
{
	start();
	compare(15, 1, OBK_NTT_INVERSE, OBK_NTT_NR, NULL);
	stop();
}

/* A small table of roots takes the path on which larger transforms use the whole table. */
TEST(roots_beyond_the_table)
{
	start();
	CHECK_INT(obk_ntt_gpu_limit_roots(domain, 11, &fault), OB_ERR_ARGUMENT);
	check_ok(obk_ntt_gpu_limit_roots(domain, 12, &fault));
	compare(15, 1, OBK_NTT_INVERSE, OBK_NTT_RN, NULL);
	compare(15, 1, OBK_NTT_FORWARD, OBK_NTT_NR, NULL);
	stop();
}

TEST(batches)
{
	struct obk_fr coset;

	start();
	obk_fr_from_plain(&coset, (uint64_t[4]){ 0, 0, 0, 1 });
	compare(3, 70, OBK_NTT_FORWARD, OBK_NTT_NN, &coset);
	compare(6, 5, OBK_NTT_INVERSE, OBK_NTT_RR, &coset);
	compare(11, 3, OBK_NTT_INVERSE, OBK_NTT_RN, NULL);
	compare(4, 0, OBK_NTT_INVERSE, OBK_NTT_RN, NULL);
	stop();
}

TEST(there_and_back_on_the_device)
{
	struct obk_ntt_job job = { .log_n = 12, .order = OBK_NTT_NR, .batch = 1 };
	size_t bytes = sizeof(struct obk_fr) << 12;
	struct obk_fr *x = random_elements(1 << 12), *y = malloc(bytes);
	struct obk_gpu_buffer buffer;
	CUstream stream;

	start();
	check_ok(obk_gpu_enter(gpu, &fault));
	check_ok(obk_gpu_take(gpu, bytes, &buffer, &fault));
	check_ok(obk_gpu_stream_take(gpu, &stream, &fault));
	check_ok(obk_gpu_write(gpu, stream, buffer.at, x, bytes, &fault));
	check_ok(obk_ntt_gpu_run_device(domain, &job, buffer.at, stream, &fault));
	job.order = OBK_NTT_RN;
	job.direction = OBK_NTT_INVERSE;
	check_ok(obk_ntt_gpu_run_device(domain, &job, buffer.at, stream, &fault));
	check_ok(obk_gpu_read(gpu, stream, y, buffer.at, bytes, &fault));
	CHECK(memcmp(x, y, bytes) == 0);
	check_ok(obk_ntt_gpu_run_device(domain, &job, buffer.at, NULL, &fault));
	CHECK_INT(
		obk_ntt_gpu_run_device(domain, &job, buffer.at + 8, NULL, &fault), OB_ERR_ARGUMENT);
	obk_gpu_leave(gpu);
	free(x);
	free(y);
	stop();
}

TEST(bad_input)
{
	struct obk_ntt_job job = { .log_n = 2, .batch = 1 }, wrong;
	struct obk_fr x[4] = { 0 };

	start();
	wrong = job;
	wrong.log_n = OBK_NTT_MAX_LOG_N + 1;
	CHECK_INT(obk_ntt_gpu_run(domain, &wrong, x, &fault), OB_ERR_LIMIT);
	CHECK_INT(obk_ntt_gpu_run(domain, &job, NULL, &fault), OB_ERR_ARGUMENT);
	wrong = job;
	wrong.coset = &obk_fr_zero;
	CHECK_INT(obk_ntt_gpu_run(domain, &wrong, x, &fault), OB_ERR_ARGUMENT);
	wrong = job;
	wrong.order = 4;
	CHECK_INT(obk_ntt_gpu_run(domain, &wrong, x, &fault), OB_ERR_ARGUMENT);
	wrong = job;
	wrong.batch = OBK_NTT_MAX_BATCH;
	CHECK_INT(obk_ntt_gpu_run(domain, &wrong, x, &fault), OB_ERR_LIMIT);
	CHECK_INT(obk_ntt_gpu_run(domain, NULL, x, &fault), OB_ERR_ARGUMENT);
	stop();
}

int main(int argc, char **argv)
{
	return gpu_test_main(argc, argv);
}
