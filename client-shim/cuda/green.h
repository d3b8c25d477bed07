/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Green contexts: the server's driver splits the multiprocessors and creates them. The id on the
 * wire is the program's handle. For struct obf_backend. Any thread.
 */
#ifndef OBC_GREEN_H
#define OBC_GREEN_H

#include "front/backend.h"

CUresult obc_green_split(const struct obf_split *split, struct obf_split_made *ret);
CUresult obc_green_create(struct obf_green *green, const struct obf_sm_share *share);
void obc_green_destroy(const struct obf_green *green);

#endif
