/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The filling `etcd`: keys in an etcd of version 3.4 or newer, through its JSON gateway.
 *
 *     etcd.c ──► watch (all keys) ──► pager ──┐
 *        ├─────► leader ──► lease ────────────┼─► calls ──► login, http, endpoints
 *        └─────► transactions, ranges ────────┘
 *
 * A timer drives all of them. It also reads one key each second, unless other answers have shown that
 * there is a quorum: keepalives and the watch notice its loss too late.
 */
#ifndef OBL_ETCD_H
#define OBL_ETCD_H

#include "loadbalancer/registry/registry.h"

/*
 * addresses: "http://a:2379,http://b:2379". OB_ERR_URL, OB_ERR_ARGUMENT (prefix, lease, user without a
 * password file), OB_ERR_TLS.
 */
enum ob_err obl_etcd_open(uv_loop_t *loop, const char *addresses,
	const struct obl_registry_options *options, const struct obl_watcher *watcher,
	struct obl_registry **ret, struct ob_cause *ret_cause);

#endif
