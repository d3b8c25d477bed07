/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The filling `static`: a registry in this process and a file with all its keys but the leased ones.
 * One balancer: a lock on PATH.lock keeps others out. Each transaction is answered when the file has
 * been written, synchronized and renamed by a thread of libuv's pool; transactions that arrive in the
 * meantime are saved together. When the file cannot be written, the registry goes back to the saved
 * state, refuses transactions, and tries again each second.
 */
#ifndef OBL_FILE_H
#define OBL_FILE_H

#include "loadbalancer/registry/registry.h"

/*
 * OB_ERR_IO: the file or its lock cannot be opened, or is damaged; OB_ERR_LIMIT: another balancer has
 * it. Blocks while it reads the file.
 */
enum ob_err obl_file_open(uv_loop_t *loop, const char *path, const struct obl_watcher *watcher,
	struct obl_registry **ret, struct ob_cause *ret_cause);

#endif
