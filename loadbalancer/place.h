/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Placement: chooses servers and devices for a request. A pure function of the known state of the
 * servers, the request, the policy and a state that the caller keeps (a turn and a random number):
 * the same arguments give the same result, so that a decision can be tested, logged and replayed.
 *
 *   1. Everything that the request cannot have is left out, with its reason. What is *reserved*
 *      (memory, share, sharers, exclusive use) decides; the load that a server reports does not.
 *   2. GPUs and MIG instances come first, software devices only if those do not suffice. The two
 *      kinds are not mixed in one request.
 *   3. As few servers as possible: devices of one server can access each other's memory.
 *   4. Among what is left the policy chooses.
 *
 * Two callers: a client that has a list of servers (loadbalancer/ask.c), which knows only what each
 * server reports; and a balancer, which knows the ledger.
 *
 * No I/O, no memory of its own, libc alone; any thread. The caller owns all structs. The arrays of
 * servers are read only. 3 to 8 ns for each device of the pool (docs/BENCHMARKS.md).
 */
#ifndef OBL_PLACE_H
#define OBL_PLACE_H

#include "loadbalancer/request.h"

/*
 * Chooses. False: it cannot be placed now; ret->outlook and the numbers say why. At most
 * OBL_SERVERS_MAX servers are considered. *ret is always written.
 */
bool obl_place(const struct obl_server *servers, uint32_t n, const struct obl_request *request,
	enum obl_policy policy, struct obl_state *state, struct obl_choice *ret);
/*
 * The same without the explanation, which costs several times the rest: if it is false, only that is
 * known, and *ret has nothing.
 */
bool obl_place_try(const struct obl_server *servers, uint32_t n, const struct obl_request *request,
	enum obl_policy policy, struct obl_state *state, struct obl_choice *ret);
/*
 * Names the devices that a request should wait for: of those that it could use once they are free,
 * the ones on which the least must end first; as few servers as possible. Servers that are not
 * available, and faulty devices, are left out; `kept` is ignored. False: there are not enough.
 */
bool obl_claim(const struct obl_server *servers, uint32_t n, const struct obl_request *request,
	struct obl_choice *ret);
/* Whether a request could still use the devices that obl_claim named, once they are free. */
bool obl_claim_holds(const struct obl_server *servers, uint32_t n,
	const struct obl_request *request, const struct obl_choice *claim);
/*
 * Writes one sentence why nothing fits, with the nearest fit: "devices: 3 with too little free
 * memory (40 GiB wanted, the largest free block is 12 GiB, on gpu3 of rack2)". For messages; cut at
 * `size`.
 */
void obl_explain(const struct obl_choice *choice, const struct obl_server *servers,
	const struct obl_request *request, char *ret_text, size_t size);

/*
 * Accounts a placement, or takes it back, in the servers' devices: for simulations, and for callers
 * whose ledger is this array. Saturates at 0. A placement by the policy EXCLUSIVE must have
 * `exclusive` set here.
 */
void obl_take(struct obl_server *servers, const struct obl_request *request,
	const struct obl_choice *choice);
void obl_give(struct obl_server *servers, const struct obl_request *request,
	const struct obl_choice *choice);

#endif
