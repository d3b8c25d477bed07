/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Where a balancer keeps its registry if it is not told: a file in the folder that the system has for
 * a program's state. No state; main thread only.
 */
#ifndef OBL_STATE_FOLDER_H
#define OBL_STATE_FOLDER_H

#include <stddef.h>

#include "base/cause.h"

/*
 * "static:" and the file: in $STATE_DIRECTORY (of a systemd unit, which has made it), else in
 * outboard-balancer/ of $XDG_STATE_HOME, else of $HOME/.local/state, which are made if they are
 * missing. OB_ERR_ARGUMENT: there is none of them; OB_ERR_IO: it cannot be made; *ret_cause.
 */
enum ob_err obl_state_registry(char *ret_url, size_t size, struct ob_cause *ret_cause);

#endif
