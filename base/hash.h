/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Hashes of bytes, 64 bits: for hash tables, for names of files, and to detect damaged or changed
 * data. They have no secret: a peer that chooses the bytes can choose the hash. Files on disk
 * contain both hashes, so their values never change. Plain functions, any thread.
 */
#ifndef OB_HASH_H
#define OB_HASH_H

#include <stddef.h>
#include <stdint.h>

#define OB_HASH_START 0xcbf29ce484222325u

/*
 * FNV-1a (Fowler, Noll, Vo), continued from `hash`, which is OB_HASH_START at first. The hash of
 * two pieces is that of their concatenation.
 */
uint64_t ob_hash(uint64_t hash, const void *bytes, size_t size);
/*
 * For large data: FNV-1a over words of 8 bytes, with a shift after each, then over the remaining
 * bytes. About eight times faster than ob_hash. The value depends on how the data is divided into
 * pieces, and on the byte order of the machine.
 */
uint64_t ob_hash_words(uint64_t hash, const void *bytes, size_t size);

#endif
