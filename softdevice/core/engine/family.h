/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_family: a grid that the host launched, and all grids that device code launches below it.
 *
 *   node     a grid, a copy, a fill or a mark; it starts when the work that it waits for is over
 *   parent   the grid whose code launched it; a grid is over when its blocks and its children are
 *   stream   the order of nodes: a node waits for the last one of its stream
 *   tail     launched into cudaStreamTailLaunch: starts when the blocks and the other children of
 *            the parent are over, one after another
 *
 * Nodes that are over are freed. Others are named by number, so a stale name finds nothing.
 *
 * The pool's lock guards everything here. Functions for device code are called by workers without
 * the lock; a node that they return belongs to the caller until it is submitted.
 */
#ifndef OBD_CORE_FAMILY_H
#define OBD_CORE_FAMILY_H

#include "softdevice/core/engine/exec.h"

#define OBD_FAMILY_MAX_STREAMS (1u << 20) /* streams and events that exist at once */
/*
 * Nodes that are not over. A grid whose blocks have run is one of them until its children are over,
 * and copies and marks have no other limit.
 */
#define OBD_FAMILY_MAX_NODES   (1u << 18)

/* cudaStream_t of device code */
#define OBD_STREAM_NULL       0u
#define OBD_STREAM_LEGACY     1u
#define OBD_STREAM_PER_THREAD 2u
#define OBD_STREAM_TAIL       3u
#define OBD_STREAM_FORGET     4u

/* A copy or fill of rows in device memory; a fill has no source. */
struct obd_rows {
	uint64_t to, from;
	size_t to_pitch, from_pitch, width, height;
	uint8_t value;
};

/*
 * Memory for the parameters of a grid to launch, on behalf of block c. Returns its address; NULL:
 * *ret_result says why. `grid` need not stay; its params are ignored.
 */
void *obd_family_buffer(struct obd_cta *c, const struct obd_grid *grid, CUresult *ret_result);
/* Launches the grid of a buffer, which must not be used again. */
CUresult obd_family_launch(struct obd_cta *c, void *buffer, uint64_t stream);
CUresult obd_family_rows(struct obd_cta *c, const struct obd_rows *rows, uint64_t stream);
/*
 * False: the buffer for n more launches would exceed the limit, and this changes as soon as grids
 * that could run now have started: the caller is to wait with wants_help set.
 */
bool obd_family_has_room(struct obd_cta *c, uint32_t n);

enum obd_family_wait_result {
	OBD_FAMILY_IDLE,     /* all work that the block has launched is over */
	OBD_FAMILY_BUSY,     /* the caller is to wait, with wants_help set */
	OBD_FAMILY_TOO_DEEP, /* grids that wait for one another are nested too deeply */
};
enum obd_family_wait_result obd_family_block_wait(struct obd_cta *c);

/* Makes a stream or an event. 0: there are too many. */
uint64_t obd_family_stream_new(struct obd_cta *c, bool is_event);
/* CUDA_ERROR_INVALID_HANDLE: there is no such stream or event. */
CUresult obd_family_stream_free(struct obd_cta *c, uint64_t handle, bool is_event);
CUresult obd_family_record(struct obd_cta *c, uint64_t event, uint64_t stream);
CUresult obd_family_wait(struct obd_cta *c, uint64_t stream, uint64_t event);
/* The same text, in memory that device code can read. NULL: out of memory. */
const char *obd_family_text(struct obd_cta *c, const char *text);

#endif
