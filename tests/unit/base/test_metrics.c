/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Prometheus text: samples, escaped labels, histograms. */
#include "base/metrics.h"
#include "tests/test.h"

static struct ob_buf out;

static void begin(void)
{
	ob_buf_init(&out, 1 << 16);
}

static void check(const char *want)
{
	CHECK(ob_buf_append(&out, "", 1));
	CHECK_STR((const char *)out.data, want);
	ob_buf_fini(&out);
}

TEST(samples)
{
	begin();
	ob_metrics_gauge(&out, "busy_ratio", "Busy.", 0.5);
	ob_metrics_counter(&out, "calls_total", "Calls.", UINT64_MAX);
	ob_metrics_seconds(&out, "device_seconds_total", "Time.", 1500000000);
	ob_metrics_count(&out, "queue_length", "tenant=\"a\"", 3);
	ob_metrics_sample(&out, "memory_bytes", "", 85899345920.0);
	check("# HELP outboard_busy_ratio Busy.\n# TYPE outboard_busy_ratio gauge\n"
	      "outboard_busy_ratio 0.5\n"
	      "# HELP outboard_calls_total Calls.\n# TYPE outboard_calls_total counter\n"
	      "outboard_calls_total 18446744073709551615\n"
	      "# HELP outboard_device_seconds_total Time.\n"
	      "# TYPE outboard_device_seconds_total counter\n"
	      "outboard_device_seconds_total 1.500000000\n"
	      "outboard_queue_length{tenant=\"a\"} 3\noutboard_memory_bytes 8.58993459e+10\n");
}

TEST(labels_are_escaped_and_cut)
{
	char text[8], longer[16], gpu[OB_METRICS_GPU_MAX], name[200];
	uint8_t uuid[16] = { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef };

	CHECK_STR(ob_metrics_label_text("a\"\\\n", longer, sizeof longer), "a\\\"\\\\?");
	CHECK_STR(ob_metrics_label_text("abcdefghij", text, sizeof text), "abcde");
	CHECK_STR(ob_metrics_label_text("abcde\"x", text, sizeof text), "abcde");
	ob_metrics_gpu(3, uuid, "NVIDIA H100", NULL, gpu);
	CHECK_STR(gpu,
		"gpu=\"3\",UUID=\"GPU-01234567-89ab-cdef-0000-000000000000\","
		"modelName=\"NVIDIA H100\"");
	ob_metrics_gpu(0, uuid, "H\"", "node-1", gpu);
	CHECK(strstr(gpu, ",modelName=\"H\\\"\",hostname=\"node-1\""));
	/* the longest names fit, and the labels are whole */
	memset(name, '"', sizeof name - 1);
	name[sizeof name - 1] = 0;
	ob_metrics_gpu(UINT32_MAX, uuid, name, name, gpu);
	CHECK(strlen(gpu) < sizeof gpu - 1 && gpu[strlen(gpu) - 1] == '"');
}

TEST(a_histogram_is_cumulative_and_whole)
{
	struct ob_histogram histogram = { 0 };

	ob_histogram_add(&histogram, 0);
	ob_histogram_add(&histogram, 1000);
	ob_histogram_add(&histogram, 1001);
	ob_histogram_add(&histogram, 100000000000);
	ob_histogram_add(&histogram, 100000000001);
	begin();
	ob_metrics_histogram(&out, "wait_seconds", "a=\"b\"", &histogram);
	CHECK(ob_buf_append(&out, "", 1));
	CHECK(strstr((char *)out.data, "outboard_wait_seconds_bucket{a=\"b\",le=\"1e-06\"} 2\n"));
	CHECK(strstr((char *)out.data, "_bucket{a=\"b\",le=\"2e-06\"} 3\n"));
	CHECK(strstr((char *)out.data, "_bucket{a=\"b\",le=\"50\"} 3\n"));
	CHECK(strstr((char *)out.data, "_bucket{a=\"b\",le=\"100\"} 4\n"));
	CHECK(strstr((char *)out.data, "_bucket{a=\"b\",le=\"+Inf\"} 5\n"));
	CHECK(strstr((char *)out.data, "outboard_wait_seconds_count{a=\"b\"} 5\n"));
	CHECK(strstr((char *)out.data, "outboard_wait_seconds_sum{a=\"b\"} 200.000002002\n"));
	ob_buf_fini(&out);
	begin();
	ob_metrics_histogram(&out, "wait_seconds", "", &histogram);
	CHECK(ob_buf_append(&out, "", 1));
	CHECK(strstr((char *)out.data, "outboard_wait_seconds_bucket{le=\"1e-06\"} 2\n"));
	CHECK(strstr((char *)out.data, "outboard_wait_seconds_count 5\n"));
	ob_buf_fini(&out);
}

TEST(a_full_buffer_is_marked)
{
	ob_buf_init(&out, 40);
	ob_metrics_gauge(&out, "busy_ratio", "Busy.", 1);
	CHECK(out.failed && out.size <= 40);
	ob_buf_fini(&out);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
