/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_fit: the difference between the server's and the client's monotonic clock, with a bound of
 * its error. Each exchange (a ping, or a call with its reply) bounds the difference: what the
 * server stamped happened after the client sent and before the client received. The bounds of all
 * exchanges in a window of time are intersected. Between the windows' middles the difference is
 * interpolated, so that clocks that drift are followed. One thread at a time.
 *
 *     difference = server clock - client clock
 *     stamped last - received  <=  difference  <=  stamped first - sent
 */
#ifndef OBC_CLOCK_FIT_H
#define OBC_CLOCK_FIT_H

#include <stdbool.h>
#include <stdint.h>

#define OBC_FIT_WINDOWS  64u
#define OBC_FIT_WIDTH_NS 1000000000ull /* of a window at first; doubled when all are used */

struct obc_fit {
	uint64_t start, width; /* ns, client's clock; width 0: nothing was added */
	uint64_t exchanges;
	struct {
		bool used;
		int64_t least, most; /* of the difference, ns */
	} windows[OBC_FIT_WINDOWS];
};

/* Zero it to begin. first, last: server's clock; sent, received: client's clock; ns. */
void obc_fit_add(
	struct obc_fit *fit, uint64_t sent, uint64_t first, uint64_t last, uint64_t received);
/* The client's time of a time of the server. The fit must have an exchange. */
uint64_t obc_fit_client_time(const struct obc_fit *fit, uint64_t server_ns);
/*
 * ns; the largest distance of a difference used by client_time from the true one, if the clocks'
 * drift within a window is negligible. UINT64_MAX: nothing was added.
 */
uint64_t obc_fit_error(const struct obc_fit *fit);

#endif
