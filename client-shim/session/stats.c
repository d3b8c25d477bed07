/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "client-shim/session/cache.h"
#include "client-shim/session/control.h"
#include "client-shim/session/costs.h"
#include "client-shim/session/link.h"
#include "client-shim/session/log.h"
#include "client-shim/session/resume.h"
#include "client-shim/session/server.h"
#include "client-shim/session/stripe.h"
#include "client-shim/session/stripe_choice.h"
#include "protocol/obp_calls.h"

#define SHOWN_MAX 12u /* rows of each table */

struct row {
	const char *name;
	uint64_t count, trips, ns;
};

static int by_time(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->trips && y->trips)
		return x->ns < y->ns ? 1 : x->ns > y->ns ? -1 : 0;
	if (x->trips || y->trips)
		return x->trips ? -1 : 1;
	return x->count < y->count ? 1 : x->count > y->count ? -1 : 0;
}

/* Prints one line for each codec that was used in a direction. */
static void print_packed(const char *direction, const struct obp_pack_stats *stats)
{
	char raw[32], wire[32];

	for (unsigned i = 0; i < OBZ_CODEC_COUNT; i++) {
		if (!stats->chunks[i])
			continue;
		ob_text_print_size(stats->raw[i], raw, sizeof raw);
		ob_text_print_size(stats->wire[i], wire, sizeof wire);
		fprintf(stderr,
			"outboard: compression %s: %-6s %8llu chunks, %s compressed to %s\n",
			direction, obz_codec_name((enum obz_codec)i),
			(unsigned long long)stats->chunks[i], raw, wire);
	}
	if (stats->ns)
		fprintf(stderr, "outboard: compression %s: took %.3f ms\n", direction,
			(double)stats->ns / 1e6);
}

static void cache_print(void)
{
	struct obc_cache_stats stats;
	char saved[32], stored[32];

	obc_cache_stats(&stats);
	if (!stats.requested)
		return;
	ob_text_print_size(stats.bytes_saved, saved, sizeof saved);
	ob_text_print_size(stats.bytes_stored, stored, sizeof stored);
	fprintf(stderr,
		"outboard: upload cache: the server had %llu of %llu chunks, %s not sent; %s sent "
		"and stored; hashing took %.3f ms\n",
		(unsigned long long)stats.hits, (unsigned long long)stats.requested, saved, stored,
		(double)stats.naming_ns / 1e6);
	if (stats.lost)
		fprintf(stderr,
			"outboard: upload cache: the server evicted %llu chunks before they were "
			"used; they were sent\n",
			(unsigned long long)stats.lost);
}

/* The rates of earlier sessions, where this one began, and the rate that it measured itself. */
static void memory_print(void)
{
	const struct obt_link_memory *memory = obc_link_recalled();
	char out[32], in[32], now[32];

	if (!obc_link_kept())
		return;
	ob_text_print_size(memory->rate_out, out, sizeof out);
	ob_text_print_size(memory->rate_in, in, sizeof in);
	ob_text_print_size(obc_log_rate_learned(), now, sizeof now);
	fprintf(stderr,
		"outboard: link: remembered %s/s out, %s/s in (0: unknown); measured %s/s out\n",
		out, in, now);
}

static void link_print(void)
{
	struct obp_quality quality;
	struct obc_resume_stats resume;
	char out[32], in[32];

	obc_control_quality(&quality);
	obc_resume_stats(&resume);
	ob_text_print_size((uint64_t)quality.out_rate, out, sizeof out);
	ob_text_print_size((uint64_t)quality.in_rate, in, sizeof in);
	if (quality.samples)
		fprintf(stderr,
			"outboard: link: round trip %.3f ms (%.3f to %.3f, jitter %.3f, %llu "
			"pings), highest recent rate %s/s out, %s/s in\n",
			(double)quality.rtt_ns / 1e6, (double)quality.min_ns / 1e6,
			(double)quality.max_ns / 1e6, (double)quality.jitter_ns / 1e6,
			(unsigned long long)quality.samples, out, in);
	memory_print();
	if (resume.breaks)
		fprintf(stderr,
			"outboard: link: broke %llu times, restored %llu times; down for %.3f s in "
			"total, %.3f s at most; %llu calls sent again\n",
			(unsigned long long)resume.breaks, (unsigned long long)resume.resumed,
			(double)resume.down_ns / 1e9, (double)resume.longest_down_ns / 1e9,
			(unsigned long long)resume.records_again);
}

/*
 * If stripes were considered: the bytes sent over them, and the measured rates of log and stripes.
 */
static void stripes_print(void)
{
	static const char *const directions[] = { "out", "in" };
	struct obc_stripe_stats stats;
	char bytes[32], log[32], striped[32];

	obc_stripe_stats(&stats);
	for (unsigned d = 0; d < 2; d++) {
		if (stats.rate[d][OBC_LOG] == 0 && !stats.copies[d])
			continue;
		ob_text_print_size(stats.bytes[d], bytes, sizeof bytes);
		ob_text_print_size((uint64_t)stats.rate[d][OBC_LOG], log, sizeof log);
		ob_text_print_size((uint64_t)stats.rate[d][OBC_STRIPES], striped, sizeof striped);
		fprintf(stderr,
			"outboard: stripes %s: %llu copies, %s; large copies reach %s/s over one "
			"connection, %s/s over %u stripes\n",
			directions[d], (unsigned long long)stats.copies[d], bytes, log, striped,
			stats.n);
	}
	if (stats.broken)
		fprintf(stderr,
			"outboard: stripes: broke %llu times; %llu copies repeated over the data "
			"connection\n",
			(unsigned long long)stats.broken, (unsigned long long)stats.repeated);
}

static bool is_wanted(void)
{
	const char *wanted = getenv("OUTBOARD_STATS");

	return wanted && *wanted && strcmp(wanted, "0") != 0;
}

void obc_stats_print(void)
{
	static struct row rows[OBP_OPCODE_END];
	struct obp_pack_stats packed, unpacked;
	struct obc_log_stats stats;
	char out[32], in[32];
	unsigned n = 0;

	if (!is_wanted())
		return;
	obc_log_stats(&stats);
	if (*obc_server_name())
		fprintf(stderr, "outboard: server %s\n", obc_server_name());
	for (unsigned opcode = 0; opcode < OBP_OPCODE_END; opcode++) {
		const struct obp_call_info *info = obp_call_info((uint16_t)opcode);

		if (info && obc_log_count((uint16_t)opcode))
			rows[n++] = (struct row){ info->name, obc_log_count((uint16_t)opcode),
				obc_log_trips((uint16_t)opcode),
				obc_log_trip_ns((uint16_t)opcode) };
	}
	qsort(rows, n, sizeof rows[0], by_time);
	ob_text_print_size(stats.bytes_out, out, sizeof out);
	ob_text_print_size(stats.bytes_in, in, sizeof in);
	/* The round trips include the hello and the goodbye. */
	fprintf(stderr,
		"outboard: %llu calls sent in %llu frames (%s), %s received; %llu round trips, "
		"%.3f ms spent waiting for them\n",
		(unsigned long long)stats.records, (unsigned long long)stats.frames_out, out, in,
		(unsigned long long)stats.round_trips, (double)stats.wait_ns / 1e6);
	obc_log_pack_stats(&packed, &unpacked);
	print_packed("out", &packed);
	print_packed("in", &unpacked);
	cache_print();
	link_print();
	stripes_print();
	fprintf(stderr, "outboard: %-28s %12s %12s %14s\n", "call", "sent", "round trips",
		"waited [ms]");
	fprintf(stderr, "outboard: %-28s %12u %12u\n", "hello", 1u, 1u);
	for (unsigned i = 0; i < n && i < SHOWN_MAX; i++)
		fprintf(stderr, "outboard: %-28s %12llu %12llu %14.3f\n", rows[i].name,
			(unsigned long long)rows[i].count, (unsigned long long)rows[i].trips,
			(double)rows[i].ns / 1e6);
	if (n > SHOWN_MAX)
		fprintf(stderr, "outboard: ... and %u more calls, none slower\n", n - SHOWN_MAX);
	obc_costs_print(stderr,
		&(struct obc_costs){ stats.run_ns, obc_log_count, obc_log_trips, obc_log_trip_ns });
}

void obc_stats_print_together(void)
{
	struct obc_log_stats sum = { .records = 0 }, stats;
	char out[32], in[32];

	if (!is_wanted() || obc_servers_count() == 1)
		return;
	for (uint32_t i = 0; i < obc_servers_count(); i++) {
		OBC_AT_SERVER(i);
		obc_log_stats(&stats);
		sum.records += stats.records;
		sum.frames_out += stats.frames_out;
		sum.bytes_out += stats.bytes_out;
		sum.bytes_in += stats.bytes_in;
		sum.round_trips += stats.round_trips;
		sum.wait_ns += stats.wait_ns;
	}
	ob_text_print_size(sum.bytes_out, out, sizeof out);
	ob_text_print_size(sum.bytes_in, in, sizeof in);
	fprintf(stderr,
		"outboard: %u servers together: %llu calls sent in %llu frames (%s), %s received; "
		"%llu round trips, %.3f ms spent waiting for them\n",
		obc_servers_count(), (unsigned long long)sum.records,
		(unsigned long long)sum.frames_out, out, in, (unsigned long long)sum.round_trips,
		(double)sum.wait_ns / 1e6);
}
