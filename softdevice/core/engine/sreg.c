/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/engine/sreg.h"

#include <time.h>

#include "softdevice/core/ops.h"

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t obd_sreg_uniform(const struct obd_warp *w, uint32_t which)
{
	const struct obd_cta *c = w->cta;
	const struct obd_launch *l = c->launch;
	const struct obd_grid *g = l->grid;
	uint64_t ws = (uint64_t)(uintptr_t)l->workspace;
	uint32_t i;

	switch (which) {
	case OBD_SREG_NTID_X:
		return g->block[0];
	case OBD_SREG_NTID_Y:
		return g->block[1];
	case OBD_SREG_NTID_Z:
		return g->block[2];
	case OBD_SREG_CTAID_X:
		return c->ctaid[0];
	case OBD_SREG_CTAID_Y:
		return c->ctaid[1];
	case OBD_SREG_CTAID_Z:
		return c->ctaid[2];
	case OBD_SREG_NCTAID_X:
		return g->grid[0];
	case OBD_SREG_NCTAID_Y:
		return g->grid[1];
	case OBD_SREG_NCTAID_Z:
		return g->grid[2];
	case OBD_SREG_ONE:
		return 1;
	case OBD_SREG_WARPID:
		return w->id;
	case OBD_SREG_NWARPID:
		return OBD_MAX_WARPS;
	case OBD_SREG_SMID:
		return c->index % (l->program->env.sm_count ? l->program->env.sm_count : 1);
	case OBD_SREG_NSMID:
		return l->program->env.sm_count;
	case OBD_SREG_GRIDID:
		return g->grid_id;
	case OBD_SREG_CLOCK:
		return (uint32_t)now_ns(CLOCK_MONOTONIC);
	case OBD_SREG_CLOCK_HI:
		return now_ns(CLOCK_MONOTONIC) >> 32;
	case OBD_SREG_CLOCK64:
		return now_ns(CLOCK_MONOTONIC);
	case OBD_SREG_GLOBALTIMER:
		return now_ns(CLOCK_REALTIME);
	case OBD_SREG_GLOBALTIMER_LO:
		return (uint32_t)now_ns(CLOCK_REALTIME);
	case OBD_SREG_GLOBALTIMER_HI:
		return now_ns(CLOCK_REALTIME) >> 32;
	case OBD_SREG_ENVREG1:
		return ws >> 32;
	case OBD_SREG_ENVREG2:
		return (uint32_t)ws;
	case OBD_SREG_DYN_SMEM:
		return g->dynamic_shared;
	case OBD_SREG_TOTAL_SMEM:
		return l->entry->pub.static_shared + g->dynamic_shared;
	case OBD_SREG_CLUSTERID_X ... OBD_SREG_CLUSTERID_Z:
		i = which - OBD_SREG_CLUSTERID_X;
		return c->ctaid[i] / l->cluster[i];
	case OBD_SREG_NCLUSTERID_X ... OBD_SREG_NCLUSTERID_Z:
		i = which - OBD_SREG_NCLUSTERID_X;
		return g->grid[i] / l->cluster[i];
	case OBD_SREG_CLUSTER_CTAID_X ... OBD_SREG_CLUSTER_CTAID_Z:
		i = which - OBD_SREG_CLUSTER_CTAID_X;
		return c->ctaid[i] % l->cluster[i];
	case OBD_SREG_CLUSTER_NCTAID_X ... OBD_SREG_CLUSTER_NCTAID_Z:
		return l->cluster[which - OBD_SREG_CLUSTER_NCTAID_X];
	case OBD_SREG_CLUSTER_CTARANK:
		return c->rank;
	case OBD_SREG_CLUSTER_NCTARANK:
		return l->cluster_size;
	case OBD_SREG_EXPLICIT_CLUSTER:
		return l->cluster_size > 1 || l->entry->pub.explicit_cluster;
	case OBD_SREG_RESERVED_BEGIN:
	case OBD_SREG_RESERVED_0:
		return l->reserved_at;
	case OBD_SREG_RESERVED_1:
		return l->reserved_at + OBD_RESERVED_SHARED / 2;
	case OBD_SREG_RESERVED_END:
		return l->reserved_at + OBD_RESERVED_SHARED;
	case OBD_SREG_RESERVED_CAP:
		return OBD_RESERVED_SHARED;
	default:
		return 0;
	}
}

static uint32_t lane_value(uint32_t which, uint32_t lane)
{
	switch (which) {
	case OBD_SREG_LANEID:
		return lane;
	case OBD_SREG_LM_EQ:
		return 1u << lane;
	case OBD_SREG_LM_LT:
		return (1u << lane) - 1;
	case OBD_SREG_LM_LE:
		return (2u << lane) - 1;
	case OBD_SREG_LM_GT:
		return ~((2u << lane) - 1);
	default:
		return ~((1u << lane) - 1);
	}
}

void obd_sreg_lanes(uint32_t which, uint32_t *ret)
{
	for (uint32_t i = 0; i < OBD_LANES; i++)
		ret[i] = lane_value(which, i);
}
