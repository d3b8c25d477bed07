/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Properties of the network path to the peer. A meter has one owner at a time; the rest has no
 * state.
 */
#ifndef OBT_PATH_H
#define OBT_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/stream.h"

/*
 * True if the peer is on this machine: a unix socket, or a TCP connection between two of its own
 * addresses.
 */
bool obt_path_local(const struct obt_stream *stream);

/* assumed rate of a path before measurements, bytes/s: 1 Gb/s */
#define OBT_METER_PRIOR_RATE   125e6
#define OBT_METER_PRIOR_BYTES  (256u << 10) /* bytes that the assumed rate counts for */
/* after this many bytes older measurements count at most half */
#define OBT_METER_WINDOW_BYTES (1u << 20)
#define OBT_METER_WINDOW_S     0.02
/* by which an unsaturated interval may exceed a rate that an earlier session has measured */
#define OBT_METER_KNOWN_STEP   1.5
/* bytes that must have been measured before the rate is worth remembering */
#define OBT_METER_KNOWN_BYTES  (512u << 10)
/* bytes/s; limits of a rate that a file or a peer reports */
#define OBT_RATE_MIN           1000u
#define OBT_RATE_MAX           1000000000000u

/*
 * Measures how fast a connection's path takes bytes while more are waiting. Zero it to begin.
 *
 *     look                     look                     look
 *      |---send---|--compress---|---send---|--compress---|
 *      '-- bytes left unsent at its end: the path was busy all the time, and what was
 *          acknowledged in the interval is its rate
 *
 * The same if nothing was left but round trips became long: then the bytes are in a queue in the
 * network. Otherwise the link was not saturated, and TCP's own figure is a lower bound: it can raise
 * the rate and not lower it. (On a link of 10 Gb/s such figures vary between 100 and 4,000 MB/s.) It
 * is also a lower bound when the reader limited the flow of bytes; sending fewer bytes would not
 * change that. Many paths let a short burst after a pause pass faster than what follows; such figures
 * count little until some time has passed without a busy interval.
 *
 * A meter may begin with the rate of an earlier session. That rate has the weight of the assumed
 * one. When OBT_METER_WINDOW_BYTES have been measured, what is left of it is dropped, so that a
 * link that became much faster is noticed. The start of a session is a pause too, so the burst
 * after it counts little, and such figures raise a rate that is known in steps of at most
 * OBT_METER_KNOWN_STEP.
 */
struct obt_meter {
	/* measured bytes and seconds, older ones weighted less; their quotient is the rate */
	double bytes, seconds;
	double spare;            /* bytes since the last busy interval */
	uint64_t from_ns, acked; /* start of the current interval */
	uint64_t rwnd_us;
	double measured; /* bytes measured by this meter */
	/* the part of `bytes` and `seconds` that comes from an earlier session */
	double recalled_bytes, recalled_seconds;
	bool known;   /* it began with the rate of an earlier session */
	bool limited; /* the kernel's queue is kept short until the recalled rate is confirmed */
};

/*
 * Call right before bytes are sent. Bytes/s, never 0 for TCP; 0: no TCP connection, rate unknown.
 * trust_reader: use the result as the path's rate also when the reader, not the path, limited it.
 * One system call.
 */
double obt_meter_rate(struct obt_meter *meter, const struct obt_stream *stream, bool trust_reader);
/* The same from the kernel's figures at `now` ns. */
struct tcp_info;
double obt_meter_look(
	struct obt_meter *meter, const struct tcp_info *info, uint64_t now, bool trust_reader);
/*
 * Begins an unused meter with a rate of an earlier session, bytes/s; a rate outside of OBT_RATE_MIN
 * to OBT_RATE_MAX is ignored. Returns the rate, or 0 if it was ignored.
 */
double obt_meter_recall(struct obt_meter *meter, uint64_t rate);
/* The rate that this meter has measured, bytes/s; 0: fewer than OBT_METER_KNOWN_BYTES so far. */
uint64_t obt_meter_learned(const struct obt_meter *meter);

#endif
