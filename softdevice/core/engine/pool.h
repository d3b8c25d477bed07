/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The pool's inside: what a launch needs before and after its blocks run, and the list of launches
 * that the helpers work on. Any thread; `locked`: the caller holds the pool's lock.
 */
#ifndef OBD_CORE_POOL_H
#define OBD_CORE_POOL_H

#include "softdevice/core/engine/exec.h"

/*
 * Checks the grid and fills in the launch. The parameters are allocated, and copied if the grid has
 * some. An error is described in *ret_fault, and there is nothing to close. The grid must stay.
 */
CUresult obd_launch_open(const struct obd_pool *pool, struct obd_launch *l,
	const struct obd_grid *grid, struct obd_fault *ret_fault);
/* After the last worker has left it: frees the parameters and counts its instructions. */
void obd_launch_close(struct obd_launch *l);
/* Runs a grid whose code launches none. */
CUresult obd_grid_run_alone(
	struct obd_pool *pool, const struct obd_grid *grid, struct obd_fault *ret_fault);

void obd_pool_lock(struct obd_pool *pool);
void obd_pool_unlock(struct obd_pool *pool);
/* Wait for obd_pool_wake, and wake; locked. */
void obd_pool_wait(struct obd_pool *pool);
void obd_pool_wake(struct obd_pool *pool);
/* Offers the launch to the helpers, and withdraws it; locked. */
void obd_pool_add(struct obd_pool *pool, struct obd_launch *l);
void obd_pool_remove(struct obd_pool *pool, struct obd_launch *l);
/* A launch of the list that has blocks to start and is wanted; NULL: none. Locked. */
struct obd_launch *obd_pool_find(struct obd_pool *pool,
	bool (*wanted)(const struct obd_launch *l, const void *arg), const void *arg);
/* A worker enters a launch, and has left it; locked. */
void obd_pool_join(struct obd_launch *l);
void obd_pool_leave(struct obd_pool *pool, struct obd_launch *l);
/* Waits for one of the limit's threads, for the calling one, and gives it back. NULL: nothing. */
void obd_limit_enter(struct obd_pool *pool, struct obd_limit *limit);
void obd_limit_leave(struct obd_pool *pool, struct obd_limit *limit);
/* True: all blocks have run, or the launch was stopped, and no worker is in it; locked. */
bool obd_pool_is_over(struct obd_launch *l);

#endif
