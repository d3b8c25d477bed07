/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The columns of a pool's tables, for documents of schema 1 (docs/POOL.md). Constant. */
#ifndef OBX_POOL_TABLES_H
#define OBX_POOL_TABLES_H

#include "tools/pool_table.h"

extern const struct obx_column obx_servers_columns[], obx_server_details[], obx_gpus_columns[],
	obx_sessions_columns[], obx_session_details[], obx_parts_columns[], obx_queue_columns[],
	obx_quota_columns[], obx_events_columns[];

#define OBX_ID_SHOWN \
	12u /* characters of a reservation's id in tables; any unique start is accepted */

/* The line above the tables of `outboard top`: totals of the fleet. */
void obx_fleet_head(const json_t *fleet, struct obx_paper paper);

#endif
