/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The table of a registry that lives in this process: rows ordered by key. Plain data with its own
 * copies of the strings; embedded in its owner; one thread at a time. It knows revisions, and nothing
 * of time, files or watchers.
 */
#ifndef OBL_TABLE_H
#define OBL_TABLE_H

#include "loadbalancer/registry/registry.h"

struct obl_row {
	char *key, *value;
	uint64_t revision; /* of the last change of this row */
	const void *owner; /* the handle whose lease the row has; NULL: no lease */
};

struct obl_table {
	struct obl_row *rows;
	size_t n, capacity;
	uint64_t revision; /* of the last change of the table */
};

void obl_table_init(struct obl_table *table);
void obl_table_fini(struct obl_table *table);
/* ret_copy need not be initialised. */
void obl_table_copy(struct obl_table *ret_copy, const struct obl_table *table);
/* NULL: no such key. Valid until the next change. */
const struct obl_row *obl_table_find(const struct obl_table *table, const char *key);
/* The rows whose keys begin with the prefix: the index of the first and their number. */
size_t obl_table_prefix(const struct obl_table *table, const char *prefix, size_t *ret_n);
/* Adds or replaces a row without a new revision of the table: for loading a file. */
void obl_table_put(struct obl_table *table, const char *key, const char *value, uint64_t revision,
	const void *owner);
/* False: there was no such key. */
bool obl_table_remove(struct obl_table *table, const char *key);
/* True: all comparisons of the transaction hold. */
bool obl_table_holds(const struct obl_table *table, const struct obl_txn *txn);

#endif
