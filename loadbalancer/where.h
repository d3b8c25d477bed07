/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Selectors and labels: which servers and devices a request accepts ("model=H100,zone!=b,
 * memory>=40GiB"), and what an operator says of a server ("zone=a,rack=3"). Both are parsed once
 * into structs without pointers, which their owner may copy. Grammar:
 *
 *   selector = [ term { "," term } ]             all terms must hold
 *   term     = key operator value { "|" value }  one of the values, with = and != only
 *   operator = "=" | "!=" | ">=" | "<=" | ">" | "<"
 *   labels   = [ key "=" value { "," key "=" value } ]
 *   key      = 1 to 63 of: letters, digits, "_", "-", ".", "/"
 *   value    = 1 to 63 bytes that are printable ASCII without , | = ! < > " ' and \
 *
 * Blanks around keys, operators and values are ignored. Names that a selector knows:
 *
 *   model       the device's name contains this text, case ignored       = !=
 *   kind        gpu, mig or software                                     = !=
 *   memory      the device's whole memory: a size, 40GiB or 40G          all
 *   capability  the device's compute capability: 9.0                     all
 *   units       the device's multiprocessors                             all
 *   share-by    throttle, green or mps: how shares are kept there        = !=
 *   cuda        the CUDA version of the server's driver: 12.4            all
 *   server      the server's name; one "*" stands for any text           = !=
 *
 * A GPU has a little less memory than its name says: an "80 GB" one has 79.6 GiB, so write
 * memory>=79GiB.
 *
 * Any other key is a label of the server. A server without the label satisfies != alone. The order
 * operators compare labels that are decimal whole numbers; another label does not satisfy them.
 *
 * No state, no allocation, no I/O; any thread. Texts come from other machines and may be anything.
 */
#ifndef OBL_WHERE_H
#define OBL_WHERE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cause.h"

#define OBL_WHERE_MAX        256u /* bytes of a selector or of labels, NUL included */
#define OBL_WHERE_TERMS_MAX  16u
#define OBL_WHERE_VALUES_MAX 32u /* in all terms together */
#define OBL_WHERE_WORD_MAX   64u /* bytes of a key or a value, NUL included */
#define OBL_LABELS_MAX       16u

struct obl_device;

enum obl_where_key {
	OBL_WHERE_MODEL,
	OBL_WHERE_KIND,
	OBL_WHERE_MEMORY,
	OBL_WHERE_CAPABILITY,
	OBL_WHERE_UNITS,
	OBL_WHERE_SHARE_BY,
	OBL_WHERE_CUDA,
	OBL_WHERE_SERVER,
	OBL_WHERE_LABEL
};

enum obl_where_operator {
	OBL_WHERE_EQUAL,
	OBL_WHERE_UNEQUAL,
	OBL_WHERE_AT_LEAST,
	OBL_WHERE_AT_MOST,
	OBL_WHERE_MORE,
	OBL_WHERE_LESS
};

struct obl_where_term {
	uint8_t key;      /* enum obl_where_key */
	uint8_t compare;  /* enum obl_where_operator */
	uint8_t first, n; /* its values */
	uint16_t name;    /* LABEL: offset of its key in `text` */
};

struct obl_where_value {
	uint16_t at;     /* offset in `text` of the value, which ends with a NUL there */
	bool is_number;  /* LABEL: the value is a decimal whole number */
	uint64_t number; /* bytes; capability times 10; CUDA version times 1000; the number
	                  * of a kind or of enum obp_share_by */
};

/* A selector. All zero: no condition. */
struct obl_where {
	uint32_t n_terms;
	struct obl_where_term terms[OBL_WHERE_TERMS_MAX];
	struct obl_where_value values[OBL_WHERE_VALUES_MAX];
	char text[OBL_WHERE_MAX]; /* the words, each with a NUL */
};

/* Labels of a server. All zero: none. */
struct obl_labels {
	uint32_t n;
	struct {
		uint16_t key, value; /* offsets in `text` */
		bool is_number;
		uint64_t number;
	} list[OBL_LABELS_MAX];
	char text[OBL_WHERE_MAX];
};

/*
 * Parses a selector; "" has no conditions. OB_ERR_ARGUMENT: *ret_cause names the place and what is
 * expected there ("at 'memory>=40X': ..."). *ret is written only on success.
 */
enum ob_err obl_where_parse(const char *text, struct obl_where *ret, struct ob_cause *ret_cause);
/*
 * Parses the labels of a server. OB_ERR_ARGUMENT: a wrong word, a key twice, a key that selectors
 * use for something else, more than OBL_LABELS_MAX; *ret_cause names it.
 */
enum ob_err obl_labels_parse(const char *text, struct obl_labels *ret, struct ob_cause *ret_cause);
/* The value of a label; NULL: the server has no such label. Owned by `labels`. */
const char *obl_label_text(const struct obl_labels *labels, const char *key);

/*
 * Whether the server satisfies the terms about servers (server, cuda, labels). labels may be NULL:
 * none. cuda: the driver's version, 13000 for 13.0; 0: not known, then no term about it holds.
 */
bool obl_where_server(const struct obl_where *where, const char *name, uint32_t cuda,
	const struct obl_labels *labels);
/*
 * Whether the device satisfies the terms about devices (model, kind, memory, capability, units,
 * share-by).
 */
bool obl_where_device(const struct obl_where *where, const struct obl_device *device);

#endif
