/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The connection of a member process to its balancer: connect, register, messages. Every byte of the
 * balancer is checked, and every wait ends. One thread.
 */
#ifndef OBS_BALANCER_H
#define OBS_BALANCER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cause.h"
#include "protocol/pool.h"
#include "transport/stream.h"

#define OBS_BALANCER_CONNECT_MS 5000 /* for the connection, TLS and the answer to REGISTER */
#define OBS_BALANCER_SEND_MS    3000
/* without an acknowledgement of what was sent for so long the connection is dead */
#define OBS_BALANCER_DEAD_MS    10000u

struct obs_balancer_in {
	size_t got; /* bytes of the frame that is being received */
	struct obp_frame head;
	uint8_t map[OBP_CONTROL_MAX];
};

struct obs_balancer {
	struct obt_stream stream; /* fd -1: not connected */
	struct obs_balancer_in in;
};

/*
 * Parses an address of a balancer; a missing port is OBP_POOL_PORT. OB_ERR_URL: *ret_cause.
 */
enum ob_err obs_balancer_address(const char *text, struct obt_url *ret, struct ob_cause *ret_cause);
/*
 * Connects and registers the server. Blocks for OBS_BALANCER_CONNECT_MS at most, apart from looking up
 * the name. Any error of the connection, OB_ERR_REFUSED, _PROTOCOL: *ret_cause says what is wrong;
 * the link is closed.
 */
enum ob_err obs_balancer_open(struct obs_balancer *balancer, const struct obt_url *url,
	const struct obp_pool_register *join, struct obp_pool_registered *ret,
	struct ob_cause *ret_cause);
void obs_balancer_close(struct obs_balancer *balancer);
/* Blocks for OBS_BALANCER_SEND_MS at most. OB_ERR_CLOSED, _TIMEOUT, _IO, _NO_MEMORY. */
enum ob_err obs_balancer_send(
	struct obs_balancer *balancer, const struct obp_pool_message *message);
/*
 * Receives what has come, without blocking. OB_ERR_NONE: one whole message; call obp_pool_fini.
 * OB_ERR_NOT_FOUND: no whole one has come. OB_ERR_CLOSED, _PROTOCOL: the link is broken.
 */
enum ob_err obs_balancer_receive(struct obs_balancer *balancer, struct obp_pool_message *ret);

#endif
