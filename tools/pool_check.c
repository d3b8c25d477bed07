/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* `outboard check` of a pool. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "tools/command.h"
#include "tools/pool_verbs.h"

/* Counts the members of a list whose state is `state`; NULL: all. */
static size_t count(const json_t *list, const char *state)
{
	char text[OBX_CELL_MAX];
	const json_t *row;
	size_t i, n = 0;

	json_array_foreach(list, i, row)
	{
		obx_json_text(row, "state", text);
		n += !state || strcmp(text, state) == 0;
	}
	return n;
}

int obx_pool_check(const struct ob_command *command, const char *pool)
{
	uint64_t began = ob_clock_ns(), took;
	char name[OBX_CELL_MAX], version[OBX_CELL_MAX], registry[OBX_CELL_MAX];
	const json_t *info, *servers;
	json_t *fleet = NULL;
	size_t ready;
	bool usable;
	int code = obx_document_get(command, pool, "fleet", "", &fleet);

	if (code)
		return code;
	took = ob_clock_ns() - began;
	info = json_object_get(fleet, "info");
	servers = json_object_get(fleet, "servers");
	ready = count(servers, "ready");
	usable = !json_is_false(json_object_get(info, "registry_usable"));
	obx_json_text(info, "balancer", name);
	obx_json_text(info, "version", version);
	obx_json_text(info, "registry", registry);
	printf("pool        %s\n", pool);
	printf("balancer    %s, one of %zu, answered in %.1f ms\n", name,
		count(json_object_get(info, "balancers"), NULL), (double)took / 1e6);
	printf("versions    balancer %s, this program %s\n", version, OB_VERSION);
	printf("registry    %s%s\n", registry, usable ? "" : ", which does not answer");
	printf("servers     %zu, of which %zu take programs\n", count(servers, NULL), ready);
	printf("GPUs        %zu\n", count(json_object_get(fleet, "gpus"), NULL));
	printf("programs    %zu running, %llu waiting\n",
		count(json_object_get(fleet, "reservations"), NULL) +
			(size_t)obx_json_number(fleet, "other_reservations"),
		obx_json_number(fleet, "queue_length"));
	printf("verdict     %s\n",
		!usable ? "the pool gives no GPUs now: its registry does not answer. What runs "
			  "goes on"
			: ready
			? "all is well"
			: "no server of the pool takes programs: 'outboard server list' says why");
	json_decref(fleet);
	return usable && ready ? 0 : OBX_EXIT_UNWELL;
}
