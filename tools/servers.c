/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tools/servers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "loadbalancer/pool.h"
#include "loadbalancer/together.h"
#include "tools/command.h"
#include "transport/failure.h"

static struct obl_answer answers[OBL_LIST_MAX];

bool obx_servers_valid(const char *list, struct ob_cause *ret_cause)
{
	uint32_t n;

	return obl_together_addresses(list, answers, &n, ret_cause) == OB_ERR_NONE;
}

static void print_free(const struct obp_load_device *device, char *ret, size_t size)
{
	ob_text_print_size(
		device->total > device->used ? device->total - device->used : 0, ret, size);
}

static void line(const struct obl_answer *a, bool chosen)
{
	const struct obp_load *load = &a->load;
	char left[32] = "-";

	if (a->cause.code) {
		printf("  %-32s %s\n", a->url, obt_failure_brief(&a->cause));
		return;
	}
	if (load->n_devices)
		print_free(&load->devices[0], left, sizeof left);
	printf("%c %-32s %s%4u of %u sessions, %3u %% busy, %s free, told in %.1f ms: %s\n",
		chosen ? '*' : ' ', a->url, load->draining ? "shutting down, " : "", load->sessions,
		load->max_sessions, load->busy / 10, left, (double)a->took_ns / 1e6,
		load->n_devices ? load->devices[0].name : "no device known yet");
}

/* first: the number of the first one. */
static void devices(const struct obp_load *load, uint32_t first)
{
	for (uint32_t i = 0; i < load->n_devices; i++) {
		const struct obp_load_device *d = &load->devices[i];
		char total[32], left[32], uuid[33];

		ob_text_print_size(d->total, total, sizeof total);
		print_free(d, left, sizeof left);
		ob_text_hex(d->uuid, sizeof d->uuid, uuid);
		printf("      [%u] %s: compute capability %u.%u%s, %s, %s free, %u "
		       "multiprocessors, %u sessions, UUID %s\n",
			first + i, d->name, d->capability / 10, d->capability % 10,
			d->ptx_only ? " (runs PTX only)" : "", total, left, d->units, d->sharers,
			uuid);
	}
}

/* first: the number of the first device; a program's next one is added to it. */
static int list_look(const char *verb, const char *list, bool details, uint32_t *first)
{
	struct obl_request request = { .memory = 0 };
	static struct obl_server servers[OBL_LIST_MAX];
	struct obl_state state = { 0, ob_clock_ns() };
	struct obl_choice choice;
	struct ob_cause cause;
	uint32_t n = 0, good = 0, n_devices = 0;
	bool placed;

	if (obl_list_parse(list, answers, &n, &cause))
		return obx_usage_error(verb, "the list of servers '%s': %s", list, cause.text);
	obl_ask_all(answers, n, 0, obl_pool_timeout_ns());
	for (uint32_t i = 0; i < n; i++) {
		obl_server_from(&answers[i], &servers[i]);
		good += answers[i].cause.code == OB_ERR_NONE;
	}
	placed = obl_place(servers, n, &request, OBL_LEAST_LOAD, &state, &choice);
	for (uint32_t i = 0; i < n; i++) {
		line(&answers[i], placed && choice.parts[0].server == i);
		if (details)
			devices(&answers[i].load, *first);
		n_devices = placed && choice.parts[0].server == i ? answers[i].load.n_devices
								  : n_devices;
		obp_load_fini(&answers[i].load);
	}
	*first += n_devices;
	if (placed) {
		printf("verdict  %u of %u answer; a program would get the one with the star\n",
			good, n);
	} else {
		char text[512];

		obl_explain(&choice, servers, &request, text, sizeof text);
		printf("verdict  a program would get none: %s\n", text);
	}
	return placed ? 0 : OBX_EXIT_UNWELL;
}

int obx_servers_look(const char *verb, const char *list, bool details)
{
	struct obl_together together;
	struct ob_cause cause;
	uint32_t n_devices = 0;
	int code = 0;

	if (obl_together_parse(list, &together, &cause))
		return obx_usage_error(verb, "the list of servers '%s': %s", list, cause.text);
	for (uint32_t i = 0; i < together.n; i++) {
		int here;

		if (together.n > 1)
			printf("server %u of %u\n", i + 1, together.n);
		here = list_look(verb, together.list[i], details, &n_devices);
		code = code ? code : here;
	}
	if (together.n > 1 && !code)
		printf("together  %u servers, %u devices\n", together.n, n_devices);
	obl_together_fini(&together);
	return code;
}
