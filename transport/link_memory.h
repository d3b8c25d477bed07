/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What a client measured of the link to a server, kept for its next session: one small text file
 * for each server in $XDG_CACHE_HOME/outboard, or $HOME/.cache/outboard.
 *
 *     link-<hash of the key>      outboard-link 1
 *                                 key tcp gpu-host 14800 192.0.2.0
 *                                 out 11825113
 *                                 ...
 *                                 check <hash of the lines above>
 *
 * A file is replaced as a whole (written beside, renamed), so several processes may write at a
 * time; the last one wins. At most OBT_LINKS_MAX files are kept, the oldest are removed. Files and
 * folder must belong to the effective user, and other users must not be able to write to the
 * folder. A file that is damaged, of another version, or has a number out of its limits is not
 * used. Set-user-ID programs neither read nor write. No state; any thread; blocks on the file
 * system.
 */
#ifndef OBT_LINK_MEMORY_H
#define OBT_LINK_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cause.h"
#include "transport/path.h"
#include "transport/stream.h"
#include "transport/url.h"

#define OBT_LINKS_MAX     64u
#define OBT_LINK_KEY_MAX  340u  /* bytes of a key, NUL included */
#define OBT_LINK_FILE_MAX 2048u /* bytes of a file */
#define OBT_LINK_TRIP_MAX 60000000000u
/*
 * X(member, name in the file, minimum, maximum). Rates in bytes/s, times in ns; 0: unknown.
 *
 * rate_out, rate_in: the data connection's, from the meters of client and server. round_trip: the
 * shortest. cache_link, cache_naming: obc_cache_view. log_, stripes_: large copies over the log and
 * over stripes (obc_choice), to the device and from it.
 */
#define OBT_LINK_LIST(X)                                                \
	X(rate_out, "out", OBT_RATE_MIN, OBT_RATE_MAX)                  \
	X(rate_in, "in", OBT_RATE_MIN, OBT_RATE_MAX)                    \
	X(round_trip, "round-trip", 1, OBT_LINK_TRIP_MAX)               \
	X(cache_link, "cache-link", OBT_RATE_MIN, OBT_RATE_MAX)         \
	X(cache_naming, "cache-naming", OBT_RATE_MIN, OBT_RATE_MAX)     \
	X(log_upload, "log-upload", OBT_RATE_MIN, OBT_RATE_MAX)         \
	X(log_download, "log-download", OBT_RATE_MIN, OBT_RATE_MAX)     \
	X(stripes_upload, "stripes-upload", OBT_RATE_MIN, OBT_RATE_MAX) \
	X(stripes_download, "stripes-download", OBT_RATE_MIN, OBT_RATE_MAX)

struct obt_link_memory {
#define X(member, name, min, max) uint64_t member;
	OBT_LINK_LIST(X)
#undef X
};

/*
 * The key of a link: scheme, host and port of the address, and the network of this machine through
 * which the connection goes (its first 24 or 64 bits), since a server is reached at one rate in the
 * office and at another one from home. False: nothing is kept of this connection, because it stays
 * within the machine.
 */
bool obt_link_key(
	const struct obt_url *url, const struct obt_stream *stream, char ret_key[OBT_LINK_KEY_MAX]);
/*
 * OB_ERR_UNSUPPORTED: there is no file, or it is not used; *ret_cause says why. OB_ERR_IO. *ret is
 * written on success.
 */
enum ob_err obt_link_read(const char *key, struct obt_link_memory *ret, struct ob_cause *ret_cause);
/* Members out of their limits are left out. OB_ERR_IO, OB_ERR_UNSUPPORTED: there is no folder. */
enum ob_err obt_link_write(
	const char *key, const struct obt_link_memory *memory, struct ob_cause *ret_cause);

#endif
