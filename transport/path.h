/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What is known of the way to the other end. A meter has one owner at a time; the rest has no
 * state.
 */
#ifndef OBT_PATH_H
#define OBT_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/stream.h"

/*
 * The other end is on this machine: a unix socket, or a TCP connection between two of its own
 * addresses.
 */
bool obt_path_local(const struct obt_stream *stream);

/* bytes/s that a way has until it shows otherwise: 1 Gb/s */
#define OBT_METER_PRIOR_RATE   125e6
#define OBT_METER_PRIOR_BYTES  (256u << 10) /* what showed, as if it had been seen, that rate */
/* seen bytes after which older ones count half, at least */
#define OBT_METER_WINDOW_BYTES (1u << 20)
#define OBT_METER_WINDOW_S     0.02

/*
 * How fast a connection's way takes bytes while there are more of them than it takes. Zero it to
 * begin.
 *
 *     look                     look                     look
 *      |---send---|--compress---|---send---|--compress---|
 *      '-- bytes left unsent at its end: the way was busy all the time, and what was acknowledged in it is its rate
 *
 * The same when nothing was left, but round trips have become long: then the bytes stand in a queue
 * on the way. Else, where nothing was left, the way had time to spare, and TCP's own figure says
 * what it does at least. So it does when the reader held up the bytes, which fewer of them would
 * not change. Many a way lets a short burst after a pause pass faster than what follows: such
 * figures count little until some time has gone by without a busy interval.
 */
struct obt_meter {
	/* seen, older ones counting less; their quotient is the rate */
	double bytes, seconds;
	double spare;            /* bytes since the last busy interval */
	uint64_t from_ns, acked; /* where the interval that is being looked at began */
	uint64_t rwnd_us;
};

/*
 * To be called right before bytes are sent. Bytes/s, never 0 for TCP; 0: no TCP connection, nothing
 * is known. trust_reader: what holds up the bytes is the way, even when it is the reader. One
 * system call.
 */
double obt_meter_rate(struct obt_meter *meter, const struct obt_stream *stream, bool trust_reader);
/* The same from what the kernel said at `now` ns. */
struct tcp_info;
double obt_meter_look(
	struct obt_meter *meter, const struct tcp_info *info, uint64_t now, bool trust_reader);

#endif
