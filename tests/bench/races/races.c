/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "races.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct obl_registry *races_open(
	uv_loop_t *loop, const struct races_settings *settings, const struct obl_watcher *watcher)
{
	struct obl_registry_options options = { .url = settings->url,
		.prefix = settings->prefix,
		.balancer = "races",
		.timeout_ms = settings->timeout_ms };
	struct obl_registry *registry;
	struct ob_cause cause;

	if (obl_registry_open(loop, &options, watcher, &registry, &cause) != OB_ERR_NONE) {
		fprintf(stderr, "obl-races: %s\n", cause.text);
		exit(1);
	}
	return registry;
}

void races_ledger(char ret_value[RACES_VALUE + 1], uint32_t reserved)
{
	int n = snprintf(ret_value, RACES_VALUE + 1, "%u ", reserved);

	memset(ret_value + n, '.', RACES_VALUE - (size_t)n);
	ret_value[RACES_VALUE] = 0;
}

/* xorshift64 (Marsaglia 2003) */
uint32_t races_random(uint64_t *state, uint32_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)((*state >> 33) % below);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void races_quantiles(const char *name, uint64_t *ns, uint32_t n)
{
	static const uint32_t permille[] = { 500, 900, 990, 999 };

	qsort(ns, n, sizeof *ns, by_size);
	for (unsigned i = 0; i < sizeof permille / sizeof *permille; i++) {
		uint64_t at = n ? ns[(uint64_t)(n - 1) * permille[i] / 1000] : 0;

		printf(", \"%s_p%g_ms\": %.3f", name, permille[i] / 10.0, (double)at * 1e-6);
	}
}

int main(int argc, char **argv)
{
	struct races_settings settings;

	if (argc != 8) {
		fprintf(stderr,
			"usage: obl-races worker|audit|latency URL PREFIX SERVERS COUNT SLOTS "
			"SEED\n");
		return 2;
	}
	settings = (struct races_settings){ .url = argv[2],
		.prefix = argv[3],
		.servers = (uint32_t)strtoul(argv[4], NULL, 10),
		.count = (uint32_t)strtoul(argv[5], NULL, 10),
		.slots = (uint32_t)strtoul(argv[6], NULL, 10),
		.seed = strtoull(argv[7], NULL, 10) * 0x9e3779b97f4a7c15ull + 1,
		/* A time that was cut off would say nothing. */
		.timeout_ms = strcmp(argv[1], "latency") == 0 ? 60000 : 0 };
	if (settings.servers < RACES_PARTS_MAX || settings.servers > RACES_SERVERS_MAX ||
		settings.slots == 0 || settings.slots > 256) {
		fprintf(stderr, "obl-races: %u to %u servers, 1 to 256 slots\n", RACES_PARTS_MAX,
			RACES_SERVERS_MAX);
		return 2;
	}
	if (strcmp(argv[1], "worker") == 0)
		return races_worker(&settings);
	if (strcmp(argv[1], "latency") == 0)
		return races_latency(&settings);
	return races_audit(&settings);
}
