/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Writes metrics as Prometheus text, version 0.0.4, and keeps histograms of durations. Names are
 * given without the prefix "outboard_", which the writer adds; units are base units. The text goes
 * to a buffer; a full one is marked failed. No state; one thread at a time for a buffer or a
 * histogram.
 */
#ifndef OB_METRICS_H
#define OB_METRICS_H

#include "base/buf.h"

#define OB_METRICS_TYPE     "text/plain; version=0.0.4; charset=utf-8" /* of HTTP's Content-Type */
#define OB_METRICS_GPU_MAX  512u /* bytes of a device's labels, NUL included */
#define OB_HISTOGRAM_BOUNDS 25u

/*
 * Durations in log-linear buckets: 1, 2, 5, 10 ... from 1 us to 100 s, and one for all that is
 * longer. All zeros is an empty one.
 */
struct ob_histogram {
	uint64_t buckets[OB_HISTOGRAM_BOUNDS + 1]; /* not cumulative */
	uint64_t sum_ns;
};

void ob_histogram_add(struct ob_histogram *histogram, uint64_t ns);

/* The two lines before a metric's samples. type: "gauge", "counter", "histogram". */
void ob_metrics_head(struct ob_buf *out, const char *name, const char *type, const char *help);
/* A sample. labels: "a=\"b\",c=\"d\"" without braces, values escaped; "": none. */
void ob_metrics_sample(struct ob_buf *out, const char *name, const char *labels, double value);
void ob_metrics_count(struct ob_buf *out, const char *name, const char *labels, uint64_t value);
/* A whole metric with one sample. */
void ob_metrics_gauge(struct ob_buf *out, const char *name, const char *help, double value);
void ob_metrics_counter(struct ob_buf *out, const char *name, const char *help, uint64_t value);
void ob_metrics_seconds(struct ob_buf *out, const char *name, const char *help, uint64_t ns);
/* The samples of a histogram, in seconds. */
void ob_metrics_histogram(struct ob_buf *out, const char *name, const char *labels,
	const struct ob_histogram *histogram);

/*
 * A label's value: quotes and backslashes are escaped, control characters become '?', and what does
 * not fit is cut. Returns ret_text.
 */
const char *ob_metrics_label_text(const char *text, char *ret_text, size_t size);
/*
 * Labels of a device as dcgm-exporter's, so that the series can be joined: gpu, UUID, modelName,
 * and hostname unless it is NULL.
 */
void ob_metrics_gpu(uint32_t index, const uint8_t uuid[16], const char *model, const char *hostname,
	char ret_labels[OB_METRICS_GPU_MAX]);

#endif
