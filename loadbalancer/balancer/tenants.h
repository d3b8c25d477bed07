/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Quotas of tenants: from the file of --tenants, overridden by what operators have set (quotas/NAME
 * in the registry). The file has one line for each tenant, "NAME LIMITS" as quota.h writes them;
 * NAME * stands for all tenants without a line. Loop's thread only.
 */
#ifndef OBL_TENANTS_H
#define OBL_TENANTS_H

#include "loadbalancer/balancer/core.h"

#define OBL_TENANTS_MAX 4096u

/* Reads the file. OB_ERR_IO, OB_ERR_ARGUMENT (a wrong line), OB_ERR_LIMIT: *ret_cause. */
enum ob_err obl_tenants_read(
	const char *file, struct obl_tenants **ret, struct ob_cause *ret_cause);
void obl_tenants_free(struct obl_tenants *tenants);
/* The quota of a tenant; false: it has none. */
bool obl_tenant_quota(const struct obl_core *core, const char *tenant, struct obl_quota *ret);
/* What the tenant uses: as the registry counts it, else the sum of its reservations. */
struct obl_usage obl_tenant_usage(const struct obl_core *core, const char *tenant);
/* The names and quotas of the file; i from 0. False: there are no more. */
bool obl_tenants_nth(const struct obl_core *core, uint32_t i, const char **ret_name,
	struct obl_quota *ret_quota);

#endif
