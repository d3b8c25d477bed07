/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The inner part of placement: which servers and devices a request may use, and the order of
 * preference of a policy among them. For place.c and pick.c alone. Pure functions; any thread.
 */
#ifndef OBL_FILTER_H
#define OBL_FILTER_H

#include "loadbalancer/request.h"

/*
 * OBL_VIEW_NOW: as it is. OBL_VIEW_EMPTY: with everything free, well and answering. OBL_VIEW_CLAIM: of what is available,
 * with everything free; the policy is then what must end first.
 */
enum obl_view { OBL_VIEW_NOW, OBL_VIEW_EMPTY, OBL_VIEW_CLAIM };

/* A request, prepared for the loops over all devices. */
struct obl_search {
	const struct obl_server *servers;
	const struct obl_request *request;
	uint32_t n;
	enum obl_policy policy; /* OBL_POLICY_COUNT: what must end first, of a claim */
	enum obl_view view;
	bool software; /* look at software devices only; else at all others */
	bool named;    /* the devices' names matter */
	bool exclusive;
	bool spare_idle;       /* BINPACK: idle devices are scarce */
	uint32_t need;         /* devices */
	uint32_t parts_max;    /* servers */
	uint32_t share_most;   /* a device with more than this reserved has too little left */
	uint32_t sharers_most; /* a device with so many is full */
	uint64_t memory;
};

/* A server's devices for a part of the request. */
struct obl_rank {
	uint32_t server;
	uint32_t device;        /* the best */
	uint64_t first, second; /* keys */
	bool has_second;        /* it is computed when it is needed */
};

/* `servers` and `request` must live as long as the search. */
struct obl_search obl_search_of(const struct obl_server *servers, uint32_t n,
	const struct obl_request *request, enum obl_policy policy, enum obl_view view);
/* Why the server is left out; its devices are not looked at. */
enum obl_fit obl_server_reason(const struct obl_search *search, uint32_t server);
/* Why the device is left out; `kept`: it is kept for another request. Its kind is not looked at. */
enum obl_fit obl_device_reason(
	const struct obl_search *search, const struct obl_device *device, bool kept);
/* The same for a server whose devices are unknown: type and exclusive use cannot be guaranteed. */
enum obl_fit obl_unknown_reason(const struct obl_search *search, const struct obl_server *server);
/* The devices of the server that are kept for another request, a bit for each. */
uint32_t obl_kept_of(const struct obl_search *search, uint32_t server);

/* Finds the best device of a server; `second` is not computed. False: none fits. */
bool obl_rank_one(const struct obl_search *search, uint32_t server, struct obl_rank *ret);
/*
 * The `want` best devices of a server, by key, then by index; *ret_sum is the sum of their keys for
 * comparison with other servers. Returns how many fit, which may be fewer or more than `want`.
 */
uint32_t obl_rank_many(const struct obl_search *search, uint32_t server, uint32_t want,
	uint8_t ret_devices[OBL_DEVICES_MAX], uint64_t *ret_sum);
/* The key that decides between servers with equal first keys; `best`: the device. */
uint64_t obl_rank_second(
	const struct obl_search *search, const struct obl_server *server, uint32_t best);

#endif
