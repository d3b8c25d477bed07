/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/rqa/stream.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"

#define STATS_PERIOD 5.0
#define BLOCK        4096

struct stream {
	struct obx_job *job;
	struct obx_device_shared *device;
	uint64_t seq;
	double stats_at;
	char text[OBX_JOB_EVENT_BYTES + 64];
	size_t length, sent;
};

static double now(void)
{
	return (double)ob_clock_ns() / (double)OB_SECOND;
}

static size_t print_stats(struct stream *s)
{
	struct obx_device_state d;
	struct ob_json json;
	char *text = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);

	if (!memory)
		return 0;
	obx_device_shared_read(s->device, STATS_PERIOD / 2, &d);
	fputs("event: gpu_stats\ndata: ", memory);
	ob_json_begin(&json, memory, OB_JSON_COMPACT);
	ob_json_object(&json, NULL);
	ob_json_bool(&json, "gpu", d.gpu);
	ob_json_text(&json, "name", d.name);
	ob_json_fixed(&json, "utilization", d.utilization, 1);
	ob_json_uint(&json, "memory_used", d.memory_used);
	ob_json_uint(&json, "memory_total", d.memory_total);
	ob_json_fixed(&json, "memory_percent",
		d.memory_total ? 100.0 * (double)d.memory_used / (double)d.memory_total : 0, 1);
	ob_json_end(&json);
	fputs("\n\n", memory);
	fclose(memory);
	size = size < sizeof s->text ? size : 0;
	memcpy(s->text, text, size);
	free(text);
	return size;
}

static ssize_t on_read(void *cls, uint64_t position, char *buffer, size_t max)
{
	struct stream *s = cls;
	size_t n;

	(void)position;
	while (s->sent == s->length) {
		double left = s->stats_at + STATS_PERIOD - now();
		int length;

		s->sent = s->length = 0;
		if (left <= 0) {
			s->stats_at = now();
			s->length = print_stats(s);
			continue;
		}
		length = obx_job_wait(s->job, &s->seq, (unsigned)(left * 1000) + 1, s->text);
		if (length < 0)
			return MHD_CONTENT_READER_END_OF_STREAM;
		s->length = (size_t)length;
	}
	n = s->length - s->sent < max ? s->length - s->sent : max;
	memcpy(buffer, s->text + s->sent, n);
	s->sent += n;
	return (ssize_t)n;
}

struct MHD_Response *obx_stream_new(
	struct obx_job *job, struct obx_device_shared *device, uint64_t after)
{
	struct stream *s = calloc(1, sizeof *s);
	struct MHD_Response *response;

	if (!s)
		return NULL;
	s->job = job;
	s->device = device;
	s->seq = after;
	response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, on_read, s, free);
	if (!response)
		free(s);
	return response;
}
