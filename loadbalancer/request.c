/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/request.h"

#include <string.h>

static const char *const policy_names[OBL_POLICY_COUNT] = {
#define X(name, text, what) text,
	OBL_POLICY_LIST(X)
#undef X
};

const char *obl_policy_name(enum obl_policy policy)
{
	return (unsigned)policy < OBL_POLICY_COUNT ? policy_names[policy] : "?";
}

bool obl_policy_parse(const char *text, enum obl_policy *ret)
{
	for (unsigned i = 0; i < OBL_POLICY_COUNT; i++)
		if (strcmp(text, policy_names[i]) == 0) {
			*ret = (enum obl_policy)i;
			return true;
		}
	return false;
}
