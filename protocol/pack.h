/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Frames with a packed payload (docs/PROTOCOL.md, "Packed frames"). An obp_packer belongs to one
 * sending direction and is used under the send right; an obp_unpacker belongs to one receiving
 * direction. Neither does I/O. A packer that is off costs its caller one test of a flag.
 */
#ifndef OBP_PACK_H
#define OBP_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/err.h"
#include "compression/chooser.h"
#include "compression/codec.h"
#include "protocol/format.h"

/* no attempt to pack a frame whose largest piece has fewer bytes */
#define OBP_PACK_MIN       (16u << 10)
/*
 * bytes; copies are cut into pieces of this size when packing is on, so that packing, sending and
 * unpacking overlap
 */
#define OBP_PACK_CHUNK     (256u << 10)
#define OBP_PACK_PLAIN_MAX 4096u /* maximum of uncompressed bytes before the packed ones */

/* The codec that the client requests in its hello; 1..15: always this codec (enum obz_codec). */
enum obp_codec_request {
	/* by measurement; none on a connection within one machine */
	OBP_CODEC_CHOOSE = 0,
	/* by measurement, also within one machine */
	OBP_CODEC_MEASURE = 16,
};

struct obp_pack_stats {
	uint64_t chunks[OBZ_CODEC_COUNT]; /* NONE: examined and not packed */
	/* bytes of payload before and after */
	uint64_t raw[OBZ_CODEC_COUNT], wire[OBZ_CODEC_COUNT];
	uint64_t ns; /* time for packing or unpacking, including samples */
};

struct obp_packer {
	bool on; /* false: the other fields are not used */
	struct obz_chooser chooser;
	struct obz_work work;
	uint8_t *scratch;
	size_t scratch_size;
	/*
	 * returns the link's rate, bytes/s, 0: unknown; called right before a frame that was
	 * examined is sent
	 */
	double (*rate)(void *user);
	void *user;
	struct obp_pack_stats stats;
};

/*
 * codecs: those that both sides support; request: enum obp_codec_request or a codec; local: the
 * connection stays within the machine.
 */
void obp_packer_init(struct obp_packer *packer, unsigned codecs, unsigned request, bool local,
	double (*rate)(void *user), void *user);
/*
 * Right after init: the link's rate from an earlier session, bytes/s; 0: unknown. The first chunk
 * is then packed, or not, as for this rate.
 */
void obp_packer_expect(struct obp_packer *packer, double rate);
void obp_packer_fini(struct obp_packer *packer);
/* Gives the memory of the buffers and the codecs back to the system until the next frame. */
void obp_packer_release(struct obp_packer *packer);
/*
 * True when copies should be cut into pieces of OBP_PACK_CHUNK: the next chunk will probably be
 * packed, or the link is slow. Any thread; only a hint.
 */
bool obp_packer_cuts(const struct obp_packer *packer);
/*
 * iov[0] is the frame's header (`frame`), the others are its payload. If packing the payload's
 * largest piece saves time, changes *frame and iov to the packed frame and returns the new number
 * of entries; otherwise returns n. n >= 2.
 */
int obp_packer_frame(struct obp_packer *packer, struct obp_frame *frame, struct iovec *iov, int n);

/* This side's set of codecs, for the hello or the welcome; 0 when compression is switched off. */
unsigned obp_codecs_own(void);
/*
 * Reads OUTBOARD_CODEC: auto, none, lz4, zstd, planes; unset: OBP_CODEC_CHOOSE. Removes codecs that
 * must not be used from *ret_codecs. An invalid value causes a warning.
 */
unsigned obp_codec_request_read(unsigned *ret_codecs);

struct obp_unpacker {
	struct obz_work work;
	uint8_t *packed, *plain; /* the frame's payload as received, and unpacked */
	size_t packed_room, plain_room;
	/* of the packed payload that is being received; size 0: none */
	size_t size, have;
	uint32_t raw_size;
	enum obz_codec codec;
	struct obp_pack_stats stats;
};

/* Starts receiving the payload of this frame: allocates room for it. OB_ERR_NO_MEMORY. */
enum ob_err obp_unpacker_begin(struct obp_unpacker *unpacker, const struct obp_frame *frame);
/*
 * The payload has been received completely: unpacks it to plain, raw_size bytes. OB_ERR_COMPRESSED:
 * damaged.
 */
enum ob_err obp_unpacker_finish(struct obp_unpacker *unpacker);
void obp_unpacker_fini(struct obp_unpacker *unpacker);
/* While no frame is being received: gives the memory back to the system until the next one. */
void obp_unpacker_release(struct obp_unpacker *unpacker);

#endif
