/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Shared by the tests of the front end: starts it over the fake backend, and an image with kernels.
 * cuInit takes effect once per process, so each case starts it anew.
 */
#ifndef TEST_FRONT_H
#define TEST_FRONT_H

#include "fake.h"
#include "protocol/obf_calls.h"
#include "tests/test.h"

#define OK(call) CHECK_INT(call, CUDA_SUCCESS)

/* Initialises the process with the fake's devices; device 0's primary context is current. */
static inline CUcontext begin(void)
{
	CUcontext ctx;

	fake_attach(NULL, 0);
	OK(obf_cuInit(0));
	OK(obf_cuDevicePrimaryCtxRetain(&ctx, 0));
	OK(obf_cuCtxSetCurrent(ctx));
	return ctx;
}

/* Two kernels and a variable. */
static const char ptx_text[] =
	".version 7.5\n.target sm_75\n.address_size 64\n"
	".visible .global .align 4 .b8 table[64];\n"
	".visible .entry first(.param .u64 p0, .param .u32 p1, .param .u64 p2)\n{\n\tret;\n}\n"
	".visible .entry second(.param .u32 p0)\n.maxntid 128, 1, 1\n{\n\tret;\n}\n"
	".visible .entry third()\n.reqntid 64, 2, 1\n{\n\tret;\n}\n";

#endif
