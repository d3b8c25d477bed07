/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The file of the filling `static`: JSON, one entry on a line.
 *
 *     {"format": "outboard registry", "version": 1, "revision": 7, "entries": [
 *       {"key": "servers/a", "revision": 7, "value": "…"}]}
 *
 * No state; any thread. The functions block.
 */
#ifndef OBL_FILE_FORMAT_H
#define OBL_FILE_FORMAT_H

#include "loadbalancer/registry/table.h"

#define OBL_FILE_MAX (256u << 20) /* bytes; a larger file is refused */

/*
 * Fills an empty table; a file that does not exist leaves it empty. OB_ERR_IO, OB_ERR_LIMIT (too
 * large), OB_ERR_VERSION: *ret_cause says what to do.
 */
enum ob_err obl_file_load(const char *path, struct obl_table *table, struct ob_cause *ret_cause);
/*
 * Replaces the file, so that after a crash it has the old contents or the new. Leased rows are left
 * out. OB_ERR_REFUSED: the old file is there; OB_ERR_IO: after a crash it may be either.
 */
enum ob_err obl_file_save(
	const char *path, const struct obl_table *table, struct ob_cause *ret_cause);

#endif
