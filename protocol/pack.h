/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Frames with a packed payload (docs/PROTOCOL.md, "Packed frames"). obp_packer belongs to one
 * sending direction and to whoever holds the right to send; obp_unpacker to one receiving
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

/* bytes of a frame's largest piece below which packing is not tried */
#define OBP_PACK_MIN       (16u << 10)
/* copies are cut into this when packing is on: packing, sending and unpacking then overlap */
#define OBP_PACK_CHUNK     (256u << 10)
#define OBP_PACK_PLAIN_MAX 4096u /* bytes before the packed ones */

/* What the client asks for in its hello's `codec`. */
enum obp_codec_request {
	/* what pays, and nothing on a connection that does not leave the machine */
	OBP_CODEC_CHOOSE = 0,
	/* what pays by the measured rate, wherever the other end is */
	OBP_CODEC_MEASURE = 16,
	/* 1..15: this codec always */
};

struct obp_pack_stats {
	uint64_t chunks[OBZ_CODEC_COUNT]; /* NONE: looked at and left as they were */
	/* bytes of payload before and after */
	uint64_t raw[OBZ_CODEC_COUNT], wire[OBZ_CODEC_COUNT];
	uint64_t ns; /* spent packing or unpacking, samples included */
};

struct obp_packer {
	bool on; /* false: nothing below is used */
	struct obz_chooser chooser;
	struct obz_work work;
	uint8_t *scratch;
	size_t scratch_size;
	/* the link's, bytes/s, 0 unknown; asked right before a frame that was looked at leaves */
	double (*rate)(void *user);
	void *user;
	struct obp_pack_stats stats;
};

/*
 * codecs: those that both sides know; request: enum obp_codec_request or a codec; local: the
 * connection does not leave the machine.
 */
void obp_packer_init(struct obp_packer *packer, unsigned codecs, unsigned request, bool local,
	double (*rate)(void *user), void *user);
void obp_packer_fini(struct obp_packer *packer);
/*
 * True when copies are better cut into OBP_PACK_CHUNK: the next chunk is likely to be packed, or
 * the link slow. Any thread; a hint.
 */
bool obp_packer_cuts(const struct obp_packer *packer);
/*
 * iov[0] is the frame's header (`frame`), the others its payload. When the payload's largest piece
 * is worth packing, *frame and iov are changed so that they send the packed frame instead; the new
 * number of entries is returned, else `n`. n >= 2.
 */
int obp_packer_frame(struct obp_packer *packer, struct obp_frame *frame, struct iovec *iov, int n);

/* This side's set of codecs, for the hello or the welcome: 0 when compression is switched off. */
unsigned obp_codecs_own(void);
/*
 * OUTBOARD_CODEC: auto, none, lz4, zstd, planes; unset is CHOOSE. *ret_codecs loses what is not
 * wanted. Names a wrong value in a warning.
 */
unsigned obp_codec_request_read(unsigned *ret_codecs);

struct obp_unpacker {
	struct obz_work work;
	uint8_t *packed, *plain; /* the frame's payload as it came, and as it was */
	size_t packed_room, plain_room;
	/* of the payload that is being gathered; size 0: none is */
	size_t size, have;
	uint32_t raw_size;
	enum obz_codec codec;
	struct obp_pack_stats stats;
};

/* A frame of this header's payload is to be gathered: room for it. OB_ERR_NO_MEMORY. */
enum ob_err obp_unpacker_begin(struct obp_unpacker *unpacker, const struct obp_frame *frame);
/* It is whole: the raw payload is in plain, raw_size bytes. OB_ERR_COMPRESSED: damaged. */
enum ob_err obp_unpacker_finish(struct obp_unpacker *unpacker);
void obp_unpacker_fini(struct obp_unpacker *unpacker);

#endif
