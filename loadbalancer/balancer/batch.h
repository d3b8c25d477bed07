/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The placements of one transaction: the reservations, the ledgers of their servers and the usage of
 * their tenants. They are collected in the line (line.h), whose owner begins with n_batch and n_books
 * 0 and an empty plan (work.h). When the transaction has ended, each request is answered, or stays for
 * another try. Loop's thread only.
 */
#ifndef OBL_BATCH_H
#define OBL_BATCH_H

#include "loadbalancer/balancer/line.h"

enum obl_added {
	OBL_BATCH_ADDED,
	OBL_BATCH_ADDED_LAST, /* and nothing more: what it changes is not seen by further placements */
	OBL_BATCH_FULL,       /* nothing more fits into this transaction */
	OBL_BATCH_BLOCKED     /* not now, by its quota */
};

/* Adds a placement to the transaction. */
enum obl_added obl_batch_add(struct obl_core *core, struct obl_line *line, struct obl_asker *asker,
	const struct obl_choice *choice);
/* Makes the transaction. True: it was begun. */
bool obl_batch_make(struct obl_core *core, struct obl_line *line);

#endif
