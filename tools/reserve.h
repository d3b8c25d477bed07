/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * `outboard run --pool`: asks the pool for a reservation, shows on standard error that it waits, and
 * sets the environment from which the client library takes servers, tickets and pins. Main thread.
 */
#ifndef OBX_RESERVE_H
#define OBX_RESERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/pool.h"
#include "tools/way.h"

#define OBX_WAIT_MAX     OBP_POOL_LINGER_MAX_S
#define OBX_AGAIN_WAIT_S 300u

/* The wishes of the options, as texts where the client library reads the same texts. */
struct obx_wish {
	uint32_t gpus, wait_s, hold_s;
	const char *vram, *share, *priority, *policy; /* NULL: none */
	const char *where, *apart;
	bool exclusive, one_server, restartable;
};

/* What was granted; for obx_reserve_back. */
struct obx_reservation {
	uint8_t id[OBP_RESERVATION_BYTES];
	const char *balancers;
	const char *servers; /* with commas between them, for questions to all of them */
};

/*
 * Returns 0, or the exit code after an error, which was printed: 69 no server of the pool can
 * fulfil it, 75 not now, or no balancer answers, 77 not allowed, 64 the request is wrong, 70 the
 * pool is faulty. An interrupt while waiting cancels the request and ends the process.
 */
int obx_reserve(const struct obx_way *way, const struct obx_wish *wish, const char *program,
	struct obx_reservation *ret);
/*
 * The same for a program that was ended to be moved. Asks for the place that was offered, id, as
 * long as that is kept, until_ns (ob_clock_ns); if it cannot be had, once for the one that *ret has
 * from before; if that has ended, for any other one, for OBX_AGAIN_WAIT_S or as long as the wish says.
 * That a balancer does not allow one of the first two is final (77): the program was ended by command.
 * Connections that fail are tried again.
 */
int obx_reserve_again(const struct obx_way *way, const struct obx_wish *wish, const char *program,
	const uint8_t id[OBP_RESERVATION_BYTES], uint64_t until_ns, struct obx_reservation *ret);
/* The program could not be started: gives the reservation back. */
void obx_reserve_back(const struct obx_reservation *reservation);
/*
 * The program has ended, and nobody else has its ticket: the reservation ends without its linger time.
 * Takes 2 s at most for each balancer that does not answer.
 */
void obx_reserve_end(const struct obx_reservation *reservation);

/* If an interrupt came since obx_reserve: gives the reservation back and ends the process. */
void obx_reserve_interrupted(const struct obx_reservation *reservation);
/*
 * In the child after a fork: signals end it again, as they do before obx_reserve. Those that were
 * ignored then stay so.
 */
void obx_reserve_signals_default(void);
/* Prints why no balancer could be asked. Returns the exit code. verb: "outboard run". */
int obx_pool_failed(const char *verb, enum ob_err err, const struct ob_cause *cause);

#endif
