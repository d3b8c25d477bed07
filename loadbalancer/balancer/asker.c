/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/asker.h"

#include <stdlib.h>

#include "loadbalancer/balancer/events.h"

void obl_asker_free(struct obl_asker *asker)
{
	struct obl_core *core = asker->core;

	if (asker->link) {
		asker->link->user = NULL;
		obl_link_rest(asker->link);
	}
	*(asker->previous ? &asker->previous->next : &core->askers) = asker->next;
	*(asker->next ? &asker->next->previous : &core->last_asker) = asker->previous;
	core->n_askers--;
	free(asker);
}

void obl_asker_refuse(struct obl_asker *asker, enum obp_pool_refusal code, const char *text)
{
	struct obl_core *core = asker->core;

	core->refused++;
	obl_count_refused(&core->counts, code, core->usable && core->synced);
	obl_event_add(core, "refused", asker->entry.tenant, "%s", text);
	if (asker->link)
		obl_link_refuse(asker->link, code, code == OBP_POOL_LATER ? OBL_RETRY_MS : 0, text);
	obl_asker_free(asker);
}
