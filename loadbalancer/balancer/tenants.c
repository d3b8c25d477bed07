/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/tenants.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadbalancer/balancer/ledger.h"

#define LINE_BYTES 512u

struct obl_tenants {
	uint32_t n;
	struct {
		char name[OBP_POOL_NAME_MAX];
		struct obl_quota quota;
	} list[OBL_TENANTS_MAX];
};

static bool has_line(const struct obl_tenants *tenants, const char *name)
{
	for (uint32_t i = 0; i < tenants->n; i++)
		if (strcmp(tenants->list[i].name, name) == 0)
			return true;
	return false;
}

static enum ob_err read_lines(
	FILE *in, const char *file, struct obl_tenants *tenants, struct ob_cause *ret_cause)
{
	char line[LINE_BYTES];
	unsigned number = 0;

	while (fgets(line, sizeof line, in)) {
		char *name = line + strspn(line, " \t"), *limits, *rest;
		struct ob_cause cause = { .text = "" };

		number++;
		if (!strchr(line, '\n') && !feof(in))
			return ob_cause_set(ret_cause, OB_ERR_LIMIT,
				"%.180s, line %u has more than %u characters", file, number,
				LINE_BYTES - 2);
		line[strcspn(line, "\n#")] = '\0';
		if (!*name)
			continue;
		limits = name + strcspn(name, " \t");
		if (*limits)
			*limits++ = '\0';
		limits += strspn(limits, " \t");
		rest = limits + strcspn(limits, " \t");
		if (rest[strspn(rest, " \t\r")])
			return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
				"%.180s, line %u: '%.64s' stands behind the limits: write all of "
				"them with "
				"commas and without blanks",
				file, number, rest + strspn(rest, " \t"));
		*rest = '\0';
		if (has_line(tenants, name))
			return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
				"%.180s, line %u: '%.64s' has a line already", file, number, name);
		if (tenants->n == OBL_TENANTS_MAX)
			return ob_cause_set(ret_cause, OB_ERR_LIMIT,
				"%.180s has more than %u lines", file, OBL_TENANTS_MAX);
		if (strcmp(name, "*") != 0 && !obl_name_valid(name))
			return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
				"%.180s, line %u: '%.64s' is not a tenant's name", file, number,
				name);
		if (obl_quota_parse(limits, &tenants->list[tenants->n].quota, &cause))
			return ob_cause_set(ret_cause, OB_ERR_ARGUMENT, "%.180s, line %u: %s", file,
				number, cause.text);
		snprintf(tenants->list[tenants->n++].name, OBP_POOL_NAME_MAX, "%s", name);
	}
	/* Tenants whose lines are missing would have no limits. */
	return ferror(in) ? ob_cause_set_system(ret_cause, OB_ERR_IO, errno, "%.180s", file)
			  : OB_ERR_NONE;
}

enum ob_err obl_tenants_read(const char *file, struct obl_tenants **ret, struct ob_cause *ret_cause)
{
	struct obl_tenants *tenants = calloc(1, sizeof *tenants);
	FILE *in = fopen(file, "r");
	enum ob_err err;

	if (!tenants)
		err = ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "no memory for tenants");
	else if (!in)
		err = ob_cause_set_system(ret_cause, OB_ERR_IO, errno, "%.180s", file);
	else
		err = read_lines(in, file, tenants, ret_cause);
	if (in)
		fclose(in);
	if (err)
		free(tenants);
	else
		*ret = tenants;
	return err;
}

void obl_tenants_free(struct obl_tenants *tenants)
{
	free(tenants);
}

bool obl_tenants_nth(
	const struct obl_core *core, uint32_t i, const char **ret_name, struct obl_quota *ret_quota)
{
	if (!core->tenants || i >= core->tenants->n)
		return false;
	*ret_name = core->tenants->list[i].name;
	*ret_quota = core->tenants->list[i].quota;
	return true;
}

bool obl_tenant_quota(const struct obl_core *core, const char *tenant, struct obl_quota *ret)
{
	const struct obl_item *item = obl_mirror_find(&core->mirror, OBL_ITEM_QUOTA, tenant);
	bool found = item != NULL;

	if (item)
		*ret = *item->value.quota;
	for (uint32_t i = 0; !item && core->tenants && i < core->tenants->n; i++) {
		bool named = strcmp(core->tenants->list[i].name, tenant) == 0;

		if (!named && (found || strcmp(core->tenants->list[i].name, "*") != 0))
			continue;
		*ret = core->tenants->list[i].quota;
		found = true;
		if (named)
			break;
	}
	return found;
}

struct obl_usage obl_tenant_usage(const struct obl_core *core, const char *tenant)
{
	const struct obl_item *item = obl_mirror_find(&core->mirror, OBL_ITEM_TENANT, tenant);
	struct obl_usage sum = { 0 };

	if (item)
		return *item->value.usage;
	for (item = obl_mirror_first(&core->mirror, OBL_ITEM_RESERVATION); item;
		item = obl_mirror_next(item))
		if (strcmp(item->value.reservation->tenant, tenant) == 0) {
			struct obl_usage one = obl_usage_of_reservation(item->value.reservation);

			obl_usage_add(&sum, &one);
		}
	return sum;
}
