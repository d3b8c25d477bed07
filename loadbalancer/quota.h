/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Quotas: what a tenant may use at the same time, its weight in the queue and its highest priority.
 * Plain data and pure functions; no allocation, any thread. Text form, as an operator writes it:
 *
 *   gpus=4,memory=320GiB,share=2.5,sessions=10,weight=2,priority=high
 *
 * share is in devices: 2.5 is two and a half devices' time. A limit that is left out does not exist.
 */
#ifndef OBL_QUOTA_H
#define OBL_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cause.h"
#include "loadbalancer/request.h"

#define OBL_QUOTA_TEXT_MAX   256u
#define OBL_QUOTA_WEIGHT_MAX 1000u

/* Limits; 0: none. */
struct obl_quota {
	uint32_t gpus, sessions; /* devices; reservations */
	uint64_t memory;         /* bytes on all devices together */
	uint64_t share;          /* millionths, all devices together */
	uint32_t weight;         /* 0: 1 */
	uint32_t max_priority;   /* enum obl_priority; 0: any */
};

struct obl_usage {
	uint32_t gpus, sessions;
	uint64_t memory, share;
};

enum obl_quota_verdict {
	OBL_QUOTA_OK,
	OBL_QUOTA_LATER, /* when the tenant's other reservations have ended */
	OBL_QUOTA_NEVER  /* more than the limit itself */
};

/*
 * What a request adds to the usage. A share of 0 (not limited) counts as a whole device, and so
 * does exclusive use. Saturates.
 */
struct obl_usage obl_usage_of(const struct obl_request *request);
/* Saturates at the ends of the range: an error of accounting cannot become a huge usage. */
void obl_usage_add(struct obl_usage *usage, const struct obl_usage *more);
void obl_usage_subtract(struct obl_usage *usage, const struct obl_usage *less);

/*
 * Checks the request of a tenant. Not OK: one sentence in ret_text, "tenant alice uses 3 of 4 GPUs;
 * this request needs 2 more". priority: of the request; above the maximum: NEVER.
 */
enum obl_quota_verdict obl_quota_check(const struct obl_quota *quota, const struct obl_usage *usage,
	const struct obl_request *request, uint32_t priority, const char *tenant, char *ret_text,
	size_t size);

/* OB_ERR_ARGUMENT: *ret_cause names the word. "" has no limits. */
enum ob_err obl_quota_parse(const char *text, struct obl_quota *ret, struct ob_cause *ret_cause);
/* The text form; obl_quota_parse gives the same quota back. */
void obl_quota_print(const struct obl_quota *quota, char *ret_text, size_t size);
/* "low", "normal", "high"; "?" for others. Parse: false: none of them. */
const char *obl_priority_name(uint32_t priority);
bool obl_priority_parse(const char *text, uint32_t *ret);

#endif
