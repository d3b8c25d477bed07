/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The settings of outboard-balancer, from its command line and its configuration file. */
#ifndef OBL_SETTINGS_H
#define OBL_SETTINGS_H

#include "loadbalancer/balancer/gate.h"
#include "protocol/pool.h"

#define OBL_CONNECTIONS_DEFAULT         4096
#define OBL_CONNECTIONS_MAX             65536
#define OBL_ADDRESS_CONNECTIONS_DEFAULT 256
#define OBL_WAITING_DEFAULT             1024 /* OBL_QUEUE_MAX */
#define OBL_SHARERS_MAX                 10000
#define OBL_REBALANCE_MAX_S             3600

struct obl_settings {
	struct obl_gate_options gate;
	const char *tokens, *tenants, *ticket_key;
	const char *http;     /* address of the dashboard; NULL: none */
	const char *name;     /* NULL: the host's name and four digits */
	const char *registry; /* NULL: a file in the state folder (state_folder.h) */
	const char *registry_prefix;
	const char *registry_ca, *registry_cert, *registry_key;
	const char *registry_user, *registry_password;
	const char *policy_name;
	uint32_t policy;         /* enum obl_policy */
	uint32_t max_sharers;    /* of one device; 0: no limit */
	uint64_t default_memory; /* of a request that names none; 0: an eighth of the device */
	uint32_t max_waiting;
	uint32_t rebalance_s; /* between rounds of rebalancing; 0: off */
	uint32_t log_level;   /* enum ob_log_level */
	bool done;            /* --help, --version or --check-config was answered */
};

extern const struct ob_option obl_settings_table[];

/* Parses argv. 0: ret is filled. Else the exit status, after an error on stderr. */
int obl_settings_parse(struct obl_settings *ret, int argc, char **argv);

#endif
