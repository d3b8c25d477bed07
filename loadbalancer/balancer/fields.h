/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Fields of JSON objects, for values.c: read with checks of type, bounds and characters, and
 * written. No state; any thread.
 */
#ifndef OBL_FIELDS_H
#define OBL_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadbalancer/balancer/names.h"

/* ---- reading: false for a field that is missing, has another type or is out of bounds ---- */

/* Parses a text and passes its object to `fill`. */
bool obl_read_with(const char *text, bool (*fill)(const json_t *object, void *ret), void *ret);
/* A number from 0 to max. */
bool obl_get_number(const json_t *object, const char *key, uint64_t max, uint64_t *ret);
bool obl_get_small(const json_t *object, const char *key, uint32_t max, uint32_t *ret);
bool obl_get_flag(const json_t *object, const char *key, bool *ret);
/* Control characters are refused: the texts are printed. size: of ret, NUL included. */
bool obl_get_text(const json_t *object, const char *key, char *ret, size_t size);
bool obl_get_name(const json_t *object, const char *key, char ret[OBP_POOL_NAME_MAX]);
/* 16 hexadecimal digits. */
bool obl_get_hex(const json_t *object, const char *key, uint64_t *ret);
bool obl_get_uuid(const json_t *object, const char *key, uint8_t ret[16]);
bool obl_get_id(const json_t *object, const char *key, uint8_t ret[OBP_RESERVATION_BYTES]);
/* An array of 1 to `max` values; NULL: it is not. */
const json_t *obl_get_list(const json_t *object, const char *key, uint32_t max, uint32_t *ret_n);

/* ---- writing: without memory the field is left out ---- */

void obl_put_number(json_t *object, const char *key, uint64_t value);
void obl_put_flag(json_t *object, const char *key, bool value);
/* Bytes that are not UTF-8, and control characters, are replaced. */
void obl_put_text(json_t *object, const char *key, const char *text);
void obl_put_hex(json_t *object, const char *key, uint64_t value);
void obl_put_uuid(json_t *object, const char *key, const uint8_t uuid[16]);
void obl_put_id(json_t *object, const char *key, const uint8_t id[OBP_RESERVATION_BYTES]);
/* The object's text, malloc'ed; drops the object. NULL: no memory, or longer than a value may be. */
char *obl_object_text(json_t *object);

#endif
