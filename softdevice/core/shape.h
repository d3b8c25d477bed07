/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The shape of an instruction: how it uses its fields, and the classes of the registers in them. */
#ifndef OBD_CORE_SHAPE_H
#define OBD_CORE_SHAPE_H

/*
 * How an operation uses its fields: which are virtual registers that it reads (USE) or writes
 * (DEF).
 */
enum {
	OBD_USE_A = 1,
	OBD_USE_B = 2,
	OBD_USE_C = 4,
	OBD_USE_E = 8,
	OBD_USE_F = 16,
	OBD_USE_D = 32,
	OBD_DEF_D = 64,
	OBD_DEF_G = 128,
	OBD_PARTIAL = 256,
	OBD_CALL = 512,
	OBD_BRANCH = 1024,
	OBD_STOP = 2048,
	OBD_TABLE = 4096,
};

/* The flags are the lower 16 bits of a shape; above, two bits for each field hold a class. */
#define OBD_SHAPE_FLAGS(shape)        ((shape)&0xffffu)
#define OBD_SHAPE_CLASS(shape, shift) ((shape) >> (shift)&3u)
enum {
	OBD_SHAPE_A = 16,
	OBD_SHAPE_B = 18,
	OBD_SHAPE_C = 20,
	OBD_SHAPE_D = 22,
	OBD_SHAPE_E = 24,
	OBD_SHAPE_F = 26,
	OBD_SHAPE_G = 28,
};

#endif
