/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Requests to a registry are checked here, and entries are copied so that they outlive their source.
 * No state; any thread.
 */
#ifndef OBL_ENTRIES_H
#define OBL_ENTRIES_H

#include "loadbalancer/registry/registry.h"

/* The key that the leader holds; users of the registry neither see nor change it. */
#define OBL_LEADER_KEY "leader"

/* True: a key or a value may be stored: UTF-8 without NUL of at most `max` bytes. */
bool obl_text_fits(const char *text, size_t max);
/*
 * Checks a transaction: OB_ERR_LIMIT, or OB_ERR_ARGUMENT for a text that is not UTF-8, an empty or
 * reserved key, or a key that is changed twice.
 */
enum ob_err obl_txn_check(const struct obl_txn *txn, struct ob_cause *ret_cause);
/* The same for the prefix of a range, which may be empty. */
enum ob_err obl_prefix_check(const char *prefix, struct ob_cause *ret_cause);
/* Copies entries with their strings into one block, which free releases. A value may be NULL. */
struct obl_entry *obl_entries_copy(const struct obl_entry *entries, uint32_t n);

#endif
