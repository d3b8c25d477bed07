/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_kept: launches with large parameters, sent as the difference from an earlier launch.
 *
 * The server keeps OBP_LAUNCH_KEPT blocks of parameters for the session, this file the same blocks.
 * A launch names a block, says which words of it change, and uses the result. A block belongs to
 * one stream of one context for as long as the session lives, because records of different streams
 * may be executed in another order than they were made; within the stream it serves one function
 * until another needs it. A stream that finds no block free sends its parameters whole.
 *
 * One lock, held from the comparison until the record is committed, so that blocks change in the
 * order of the records. One table for the process. Any thread.
 */
#ifndef OBC_KEPT_H
#define OBC_KEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "client-shim/cuda/stream.h"
#include "front/front.h"

#define OBC_KEPT_LEAST 1024u /* bytes of parameters; smaller ones are sent whole */

/*
 * Sends the launch if a block can be had. packed: the parameters, in a buffer that is a multiple of
 * 8 bytes long, with zeros behind them. False: nothing was sent.
 */
bool obc_kept_launch(struct obc_stream *at, const struct obf_func *func,
	const struct obf_launch *launch, uint32_t flags, const uint64_t *packed,
	CUresult *ret_result);

#endif
