/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A load (load.h) as a msgpack map, which may be the value of a key in another message. Only for
 * files in protocol/. No state; any thread.
 */
#ifndef OBP_LOAD_MAP_H
#define OBP_LOAD_MAP_H

#include "protocol/map.h"

struct obp_load;

void obp_load_put(msgpack_packer *p, const struct obp_load *load);
/* False: not such a map, or a value out of bounds; *ret is empty. Else call obp_load_fini. */
bool obp_load_get(const msgpack_object *map, struct obp_load *ret);

#endif
