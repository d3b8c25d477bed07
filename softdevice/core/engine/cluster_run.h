/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The start and the end of clusters (cluster.h). Only the worker that runs the cluster.
 */
#ifndef OBD_CORE_CLUSTER_RUN_H
#define OBD_CORE_CLUSTER_RUN_H

#include "softdevice/core/engine/exec.h"

/*
 * Starts the next cluster of the worker's launch. All of its blocks are appended to the worker's
 * list, except the first, which is returned. NULL: all are started, or there is no memory.
 */
struct obd_cta *obd_cluster_take(struct obd_worker *wk);
/* A block of a cluster is done; it is no longer in the worker's list. */
void obd_cluster_block_done(struct obd_worker *wk, struct obd_cta *c);
void obd_cluster_free_all(struct obd_worker *wk);

#endif
