/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/metrics.h"

#include <stdio.h>

#include "base/uuid.h"

static const uint64_t bounds[OB_HISTOGRAM_BOUNDS] = { 1000, 2000, 5000, 10000, 20000, 50000, 100000,
	200000, 500000, 1000000, 2000000, 5000000, 10000000, 20000000, 50000000, 100000000,
	200000000, 500000000, 1000000000, 2000000000, 5000000000, 10000000000, 20000000000,
	50000000000, 100000000000 };

void ob_histogram_add(struct ob_histogram *histogram, uint64_t ns)
{
	unsigned i = 0;

	while (i < OB_HISTOGRAM_BOUNDS && ns > bounds[i])
		i++;
	histogram->buckets[i]++;
	histogram->sum_ns += ns;
}

void ob_metrics_head(struct ob_buf *out, const char *name, const char *type, const char *help)
{
	ob_buf_printf(
		out, "# HELP outboard_%s %s\n# TYPE outboard_%s %s\n", name, help, name, type);
}

/* A sample in one piece: a large pool has 100,000 of them. */
static void sample_put(struct ob_buf *out, const char *name, const char *labels, const char *value)
{
	bool any = *labels;
	char line[OB_METRICS_GPU_MAX + 256];
	int n = snprintf(line, sizeof line, "outboard_%s%s%s%s %s\n", name, any ? "{" : "", labels,
		any ? "}" : "", value);

	if (n > 0 && (size_t)n < sizeof line)
		ob_buf_append(out, line, (size_t)n);
	else
		out->failed = true;
}

void ob_metrics_sample(struct ob_buf *out, const char *name, const char *labels, double value)
{
	char text[32];

	snprintf(text, sizeof text, "%.9g", value);
	sample_put(out, name, labels, text);
}

void ob_metrics_count(struct ob_buf *out, const char *name, const char *labels, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof text, "%llu", (unsigned long long)value);
	sample_put(out, name, labels, text);
}

void ob_metrics_gauge(struct ob_buf *out, const char *name, const char *help, double value)
{
	ob_metrics_head(out, name, "gauge", help);
	ob_metrics_sample(out, name, "", value);
}

void ob_metrics_counter(struct ob_buf *out, const char *name, const char *help, uint64_t value)
{
	ob_metrics_head(out, name, "counter", help);
	ob_metrics_count(out, name, "", value);
}

void ob_metrics_seconds(struct ob_buf *out, const char *name, const char *help, uint64_t ns)
{
	ob_metrics_head(out, name, "counter", help);
	ob_buf_printf(out, "outboard_%s %.9f\n", name, (double)ns / 1e9);
}

void ob_metrics_histogram(struct ob_buf *out, const char *name, const char *labels,
	const struct ob_histogram *histogram)
{
	const char *comma = *labels ? "," : "", *open = *labels ? "{" : "",
		   *shut = *labels ? "}" : "";
	uint64_t sum = 0;

	for (unsigned i = 0; i < OB_HISTOGRAM_BOUNDS; i++) {
		sum += histogram->buckets[i];
		ob_buf_printf(out, "outboard_%s_bucket{%s%sle=\"%g\"} %llu\n", name, labels, comma,
			(double)bounds[i] / 1e9, (unsigned long long)sum);
	}
	sum += histogram->buckets[OB_HISTOGRAM_BOUNDS];
	ob_buf_printf(out, "outboard_%s_bucket{%s%sle=\"+Inf\"} %llu\n", name, labels, comma,
		(unsigned long long)sum);
	ob_buf_printf(out, "outboard_%s_sum%s%s%s %.9f\noutboard_%s_count%s%s%s %llu\n", name, open,
		labels, shut, (double)histogram->sum_ns / 1e9, name, open, labels, shut,
		(unsigned long long)sum);
}

const char *ob_metrics_label_text(const char *text, char *ret_text, size_t size)
{
	size_t n = 0;

	for (; *text && n + 3 < size; text++) {
		if (*text == '"' || *text == '\\')
			ret_text[n++] = '\\';
		ret_text[n++] = (unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text;
	}
	ret_text[n] = 0;
	return ret_text;
}

void ob_metrics_gpu(uint32_t index, const uint8_t uuid[16], const char *model, const char *hostname,
	char ret_labels[OB_METRICS_GPU_MAX])
{
	char text[OB_UUID_TEXT], name[160], host[160];

	ob_uuid_print(uuid, text);
	snprintf(ret_labels, OB_METRICS_GPU_MAX, "gpu=\"%u\",UUID=\"%s\",modelName=\"%s\"%s%s%s",
		index, text, ob_metrics_label_text(model, name, sizeof name),
		hostname ? ",hostname=\"" : "",
		hostname ? ob_metrics_label_text(hostname, host, sizeof host) : "",
		hostname ? "\"" : "");
}
