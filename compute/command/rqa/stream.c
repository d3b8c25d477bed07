/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/rqa/stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "compute/command/rqa/format.h"

#define STATS_PERIOD 5.0
#define BLOCK        4096

struct stream {
	struct obx_page *page;
	uint64_t seq;
	double stats_at;
	char text[OBX_JOB_EVENT_BYTES + 64];
	size_t length, sent;
};

static double now(void)
{
	return (double)ob_clock_ns() / (double)OB_SECOND;
}

/* All pages get the same reading. It is renewed when it is older than half a period. */
static size_t print_stats(struct stream *s)
{
	struct obx_page *page = s->page;
	struct obx_device_state *d = &page->device_state;
	char *text = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);

	if (!memory)
		return 0;
	pthread_mutex_lock(&page->device_lock);
	if (now() - page->device_at > STATS_PERIOD / 2) {
		obx_device_watch_read(&page->device, d);
		page->device_at = now();
	}
	fprintf(memory, "event: gpu_stats\ndata: {\"gpu\":%s,\"name\":", d->gpu ? "true" : "false");
	obx_json_print(memory, d->name);
	fprintf(memory,
		",\"utilization\":%.1f,\"memory_used\":%" PRIu64 ",\"memory_total\":%" PRIu64
		",\"memory_percent\":%.1f}\n\n",
		d->utilization, d->memory_used, d->memory_total,
		d->memory_total ? 100.0 * (double)d->memory_used / (double)d->memory_total : 0);
	pthread_mutex_unlock(&page->device_lock);
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
		length = obx_job_wait(&s->page->job, &s->seq, (unsigned)(left * 1000) + 1, s->text);
		if (length < 0)
			return MHD_CONTENT_READER_END_OF_STREAM;
		s->length = (size_t)length;
	}
	n = s->length - s->sent < max ? s->length - s->sent : max;
	memcpy(buffer, s->text + s->sent, n);
	s->sent += n;
	return (ssize_t)n;
}

struct MHD_Response *obx_stream_new(struct obx_page *page, uint64_t after)
{
	struct stream *s = calloc(1, sizeof *s);
	struct MHD_Response *response;

	if (!s)
		return NULL;
	s->page = page;
	s->seq = after;
	response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, on_read, s, free);
	if (!response)
		free(s);
	return response;
}
