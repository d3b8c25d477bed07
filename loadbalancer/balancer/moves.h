/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Moves of reservations whose programs may be started again elsewhere (docs/adr/0050-rebalancing.md).
 *
 *   old    claimed ──────────────────► names its successor ───► ended by order ──► credited
 *                                        │ one transaction        │ as soon as
 *   successor                          granted ──────────────► claimed
 *                                        └──► void, if nobody has claimed it: the old one stays
 *
 * A move is an offer: one transaction makes the successor and writes its id into the old
 * reservation. Both hold their memory from then on, so nothing is promised twice, and whoever dies at
 * whatever moment leaves the old one, the successor or both. All that follows is derived from the
 * two by every balancer: followers are told (follows.h), and the old one is ended when the successor
 * is in use. The successor names the server that its program comes from until the balancer that leads
 * has seen it in use: taking the name out is the move's end, which is noted once, however long the
 * program takes and whenever the old one ends. Loop's thread only.
 */
#ifndef OBL_MOVES_H
#define OBL_MOVES_H

#include "loadbalancer/balancer/members.h"

#define OBL_MOVE_TRIES_MAX 8u /* conflicts with other balancers */
#define OBL_KILLED_TEXT    "the reservation was ended by the pool's operator, or by its user"
#define OBL_LAPSED_REST_S  600u /* after an offer that nobody took, before the next one */

/* The reservation that was made in its place and exists; NULL: none. */
const struct obl_reservation *obl_successor(
	const struct obl_core *core, const struct obl_reservation *r);
/* What the server of its first part reports, if the reservation is in use there; NULL: it is not. */
const struct obp_pool_held *obl_in_use(
	const struct obl_core *core, const struct obl_reservation *r);
/*
 * When a move concerned the reservation last, seconds since 1970; 0: never, or a clock that was ahead
 * says later than now.
 */
uint64_t obl_moved_s(const struct obl_reservation *r, uint64_t now_s);
/*
 * Seconds since the ticket of an offered place was written, by no clock that can be set
 * (OBL_UNUSED_NS). Of what came with the whole registry only the ticket's times can tell.
 */
uint64_t obl_offer_age_s(const struct obl_core *core, const struct obl_item *item);
/*
 * Puts the transaction of a move together. server: where to; "": the least loaded one that fits,
 * another one than now. uuid: the device there; NULL: any. load: what the program adds to its
 * device, per mille; 0: as busy as it is reported. OB_ERR_NONE: *ret_key is the successor's key for
 * obl_work_make, and ret_server its server. OB_ERR_REFUSED: it cannot be moved now, OB_ERR_ARGUMENT:
 * never; *ret_cause says why.
 */
enum ob_err obl_move_plan(struct obl_core *core, const char *id, const char *server,
	const uint8_t *uuid, uint32_t load, char ret_key[OBL_KEY_MAX],
	char ret_server[OBP_POOL_NAME_MAX], struct ob_cause *ret_cause);
/*
 * The one whose successor this is; NULL: none. A program that is being moved has two reservations.
 */
const struct obl_reservation *obl_predecessor(
	const struct obl_core *core, const struct obl_reservation *r);
/*
 * Puts a transaction together that marks a successor as killed: its client is told so for as long
 * as the place is offered. ret_key: for obl_work_make. False: it has ended.
 */
bool obl_move_kill_plan(struct obl_core *core, const uint8_t successor[OBP_RESERVATION_BYTES],
	char ret_key[OBL_KEY_MAX]);
/* Adds the event of an offer. why: "by rebalancing", "by token 01ab23cd alice". */
void obl_move_note(struct obl_core *core, const char *id, const char *to, const char *why);

/* Counts the end of a move and adds its event. credit->from: where it comes from. */
void obl_move_arrived(struct obl_core *core, const struct obl_credit *credit);

/* Notes a successor's first use, or makes the next decided move. True: a transaction was begun. */
bool obl_moves_start(struct obl_core *core);
/* Every second: ends what was moved, and looks for successors whose first use is not noted. */
void obl_moves_sweep(struct obl_core *core);

#endif
