/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obx_way: where a program's GPUs come from, a pool or a server, by this order: an option, the
 * environment, what `outboard login` has stored, the default server. What a login has stored goes
 * into this process's environment (OUTBOARD_TOKEN, OUTBOARD_TLS_PIN), from where every connection
 * takes it. Main thread, before other threads start.
 */
#ifndef OBX_WAY_H
#define OBX_WAY_H

#include <stdbool.h>

#include "base/command_line.h"
#include "tools/login_file.h"

enum obx_from { OBX_FROM_OPTION, OBX_FROM_ENVIRONMENT, OBX_FROM_LOGIN, OBX_FROM_DEFAULT };

/* --pool, with its value in a field of the settings. */
#define OBX_POOL_OPTION(settings, field)                                                  \
	{                                                                                 \
		OB_OPTION("pool", OB_TEXT, settings, field),                              \
			.arg = "URL[,URL]", .environment = "OUTBOARD_POOL",               \
			.help = "the pool: addresses of its balancers, or the name of a " \
				"login ('outboard login')"                                \
	}

struct obx_way {
	const char *pool;   /* balancers; NULL: no pool, but `server` */
	const char *server; /* address or list; NULL: a pool */
	const char *name;   /* of the login whose address, pins or token are used; NULL: none */
	enum obx_from from;
	enum obx_from token_from; /* OBX_FROM_DEFAULT: there is no token */
	enum obx_from pin_from;   /* the same of pins */
	bool reserved;            /* the environment already has a reservation: OUTBOARD_TICKET */
};

/*
 * Finds the way. pool, server: the options' values, which may come from the environment; NULL or
 * "": not given. Returns OB_OPTIONS_GO, or the exit code after an error, which was printed. The
 * texts live until the process ends.
 */
int obx_way_find(const struct ob_command *command, const char *pool, const char *server,
	struct obx_way *ret);
/* The same for a command that needs a pool. */
int obx_way_pool(const struct ob_command *command, const char *pool, struct obx_way *ret);
const char *obx_from_name(enum obx_from from);

#endif
