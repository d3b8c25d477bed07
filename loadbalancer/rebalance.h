/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Rebalancing: which reservations should move from busy nodes to idle ones. A node is a server or a
 * device, as the caller likes. Pure: the caller measures the loads, keeps the state, and carries out
 * the moves (a waiting request is placed again; a program that may be restarted is started again
 * elsewhere). No allocation, any thread.
 *
 * imbalance = load of the busiest node - load of the idlest node
 *
 *   begin     the imbalance is above 0.3; end: it is at most 0.2 (hysteresis)
 *   from      nodes with a load above 0.8, the busiest first
 *   to        nodes with a load below 0.5 that do not get above 0.8 by it, the idlest first
 *   what      the reservation whose load is nearest to half of the difference
 *   a move    must leave the target OBL_REBALANCE_MARGIN below what the source had. So each move
 *             lowers the sum of the squares of the loads, and moves cannot go round in a circle.
 *   limits    at least 1 s between two rounds, at most 10 moves in one, and a reservation that has
 *             been moved rests for 60 s, twice as long after each further move
 */
#ifndef OBL_REBALANCE_H
#define OBL_REBALANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OBL_REBALANCE_BEGIN       300u /* per mille, as all loads here */
#define OBL_REBALANCE_END         200u
#define OBL_REBALANCE_HOT         800u
#define OBL_REBALANCE_COLD        500u
#define OBL_REBALANCE_MARGIN      50u
#define OBL_REBALANCE_MOVES_MAX   10u
#define OBL_REBALANCE_INTERVAL_MS 1000u
#define OBL_REBALANCE_REST_MS     60000u
#define OBL_REBALANCE_DOUBLINGS   6u     /* of the rest: at most 64 min */
#define OBL_REBALANCE_NODES_MAX   16384u /* devices of a whole pool */

struct obl_node {
	uint32_t load; /* per mille of its capacity; may exceed 1000 when work waits for it */
	uint64_t room; /* bytes: the largest reservation that fits */
	bool closed; /* takes and gives nothing: cordoned, silent, or others empty it (rounds.h) */
};

struct obl_movable {
	uint32_t node;
	uint32_t load;     /* per mille of a node: what it adds */
	uint64_t memory;   /* bytes that it needs */
	uint64_t moved_ms; /* when it was moved last; 0: never */
	uint32_t moves;    /* how often it was moved: obl_rebalance_rest_ms */
	/* where it may go: bit i % 64 of word i / 64 is node i; NULL: anywhere */
	const uint64_t *allowed;
};

struct obl_move {
	uint32_t movable, to; /* indexes */
};

/* Kept by the caller between rounds. All zero at first. */
struct obl_rebalance {
	bool active;
	uint64_t last_ms;                /* of the last round that moved something; 0: none */
	uint64_t rounds, moves, resting; /* statistics: resting: not moved because of its rest */
};

/* Imbalance in per mille: nodes that are closed do not count. 0 with fewer than two nodes. */
uint32_t obl_imbalance(const struct obl_node *nodes, uint32_t n);
/* How long a reservation rests that was moved so often. */
uint64_t obl_rebalance_rest_ms(uint32_t moves);
/*
 * Begins or ends by hysteresis. False: a round would move nothing, so the caller need not look for
 * what could be moved.
 */
bool obl_rebalance_active(struct obl_rebalance *state, uint32_t imbalance);
/*
 * One round. nodes: changed to the state after the moves (load and room). ret_moves has
 * OBL_REBALANCE_MOVES_MAX entries; the result is their number. now_ms: any clock above 0.
 * O(sources * (nodes + movables) + movables of the sources * nodes), with at most 256 sources.
 */
uint32_t obl_rebalance(struct obl_rebalance *state, struct obl_node *nodes, uint32_t n_nodes,
	const struct obl_movable *movables, uint32_t n_movables, uint64_t now_ms,
	struct obl_move *ret_moves);

#endif
