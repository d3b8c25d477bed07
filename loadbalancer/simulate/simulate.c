/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obl-simulate: shows what the policies, rebalancing and the queue do in a pool, with the functions
 * that the balancer uses. The same arguments give the same result, the times of placements aside.
 * A program for developers; it is not installed. docs/BENCHMARKS.md has its results.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "loadbalancer/simulate/skew.h"
#include "loadbalancer/simulate/steady.h"
#include "loadbalancer/simulate/waiting.h"

struct settings {
	const char *part;
	uint64_t servers, gpus, sessions, load, seed, large; /* 0: the part's own */
	bool has_policy;
	enum obl_policy policy;
};

static const char help[] =
	"usage: obl-simulate [--servers N] [--gpus N] [--sessions N] [--load PERCENT]\n"
	"                    [--policy NAME] [--seed N] [--large N] placement | skew | queue\n"
	"\n"
	"  placement  requests that are refused, and sharers, for each policy; offered load 50, "
	"75\n"
	"             and 90 % of the memory; 4 servers with 8 GPUs of 80 GiB, 100000 sessions\n"
	"  skew       how unequally busy GPUs are, for each policy, with and without rebalancing;\n"
	"             32 servers with 8 GPUs, load 60 %, one hour\n"
	"  queue      how long requests wait, for three rules of the queue; 4 servers with 8 "
	"GPUs,\n"
	"             load 85 %, 20000 sessions\n"
	"\n"
	"  --servers N     1 to 1024            --gpus N   of each server, 1 to 16\n"
	"  --load PERCENT  only this load       --policy NAME  only this policy\n"
	"  --sessions N    to simulate; for skew: minutes\n"
	"  --large N       queue: requests for 2, for 4 and for 8 GPUs, each per mille of all: 1\n"
	"  --seed N        of the random numbers: 1\n";

static uint32_t or_else(uint64_t value, uint32_t otherwise)
{
	return value ? (uint32_t)value : otherwise;
}

static void placement(const struct settings *s)
{
	static const uint32_t loads[] = { 50, 75, 90 };

	printf("load  policy             refused  whole GPU  sharers mean  p99  reserved   idle  "
	       "placement p50      p99\n");
	for (unsigned l = 0; l < ob_count(loads); l++)
		for (unsigned p = 0; p < OBL_POLICY_COUNT; p++) {
			struct obl_steady_terms terms = { or_else(s->servers, 4),
				or_else(s->gpus, 8), or_else(s->sessions, 100000),
				or_else(s->load, loads[l]), (enum obl_policy)p, s->seed };
			struct obl_steady r;

			if ((s->has_policy && s->policy != p) || (s->load && l))
				continue;
			r = obl_steady_run(&terms);
			printf("%3u %%  %-17s %6.2f %%  %7.1f %%  %12.1f %4.0f  %6.1f %% %5.1f %%  "
			       "%10.1f us %5.1f us\n",
				terms.load, obl_policy_name(terms.policy), r.refused,
				r.refused_whole, r.sharers_mean, r.sharers_p99, r.used, r.idle,
				r.ns_p50 / 1e3, r.ns_p99 / 1e3);
			fflush(stdout);
		}
}

static void skew(const struct settings *s)
{
	printf("policy             rebalancing  use p5   mean    p95    hot   late  moves/min  "
	       "again  "
	       "refused\n");
	for (unsigned p = 0; p < OBL_POLICY_COUNT; p++)
		for (unsigned on = 0; on < 2; on++) {
			struct obl_skew_terms terms = { or_else(s->servers, 32),
				or_else(s->gpus, 8), or_else(s->sessions, 60), or_else(s->load, 60),
				50, on, (enum obl_policy)p, s->seed };
			struct obl_skew r;

			if (s->has_policy && s->policy != p)
				continue;
			r = obl_skew_run(&terms);
			printf("%-17s  %-11s  %4.0f %%  %3.0f %%  %3.0f %%  %3.0f %%  %3.0f %%  "
			       "%9.1f  %3.0f %%  %4.1f %%\n",
				obl_policy_name(terms.policy), on ? "on" : "off", r.p5, r.mean,
				r.p95, r.hot, r.late, r.moves, r.again, r.refused);
			fflush(stdout);
		}
}

static void times_print(const char *what, const struct obl_wait_times *times)
{
	printf("  %-10s  mean %6.0f s  p99 %6.0f s  most %6.0f s\n", what, times->mean, times->p99,
		times->most);
}

static void queue(const struct settings *s)
{
	for (unsigned rule = 0; rule < OBL_RULES; rule++) {
		struct obl_waiting_terms terms = { or_else(s->servers, 4), or_else(s->gpus, 8),
			or_else(s->sessions, 20000), or_else(s->load, 85), (uint32_t)s->large,
			(enum obl_rule)rule, s->has_policy ? s->policy : OBL_BINPACK, s->seed };
		struct obl_waits r = obl_waits_run(&terms);

		printf("%s: reserved %.1f %%, longest queue %u, %u wait at the end, decision p50 "
		       "%.1f us, "
		       "p99 %.1f us\n",
			obl_rule_name(terms.rule), r.used, r.length, r.unserved, r.ns_p50 / 1e3,
			r.ns_p99 / 1e3);
		times_print("part", &r.small);
		times_print("one GPU", &r.whole);
		times_print("2 to 8", &r.several);
		times_print("tenant 90%", &r.greedy);
		times_print("tenant 10%", &r.modest);
		fflush(stdout);
	}
}

static bool option_take(struct settings *s, int option, const char *value)
{
	switch (option) {
	case 's':
		return ob_text_parse_number(value, 1, OBL_SERVERS_MAX, &s->servers);
	case 'g':
		return ob_text_parse_number(value, 1, OBL_DEVICES_MAX, &s->gpus);
	case 'n':
		return ob_text_parse_number(value, 1, 100000000, &s->sessions);
	case 'l':
		return ob_text_parse_number(value, 1, 1000, &s->load);
	case 'm':
		return ob_text_parse_number(value, 0, 333, &s->large);
	case 'r':
		return ob_text_parse_number(value, 0, UINT64_MAX, &s->seed);
	case 'p':
		s->has_policy = true;
		return obl_policy_parse(value, &s->policy);
	default:
		return false;
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "servers", 1, NULL, 's' },
		{ "gpus", 1, NULL, 'g' }, { "sessions", 1, NULL, 'n' }, { "load", 1, NULL, 'l' },
		{ "policy", 1, NULL, 'p' }, { "seed", 1, NULL, 'r' }, { "large", 1, NULL, 'm' },
		{ "help", 0, NULL, 'h' }, { NULL, 0, NULL, 0 } };
	struct settings s = { .seed = 1, .large = 1 };
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (option == 'h') {
			fputs(help, stdout);
			return 0;
		}
		if (!option_take(&s, option, optarg)) {
			if (option != '?')
				fprintf(stderr, "obl-simulate: '%s' is out of range\n", optarg);
			fputs(help, stderr);
			return 2;
		}
	}
	s.part = optind + 1 == argc ? argv[optind] : "";
	if (strcmp(s.part, "placement") == 0) {
		placement(&s);
	} else if (strcmp(s.part, "skew") == 0) {
		skew(&s);
	} else if (strcmp(s.part, "queue") == 0) {
		queue(&s);
	} else {
		fputs(help, stderr);
		return 2;
	}
	return 0;
}
