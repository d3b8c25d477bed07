/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Values of memset that control the device of fake_driver.c. */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H

#define FAKE_BEGIN   0xb0 /* begins a piece of work */
#define FAKE_END     0xe0 /* ends the oldest */
/* stores, as a uint64_t, how many places in host memory copies from the device have gone to */
#define FAKE_COUNT   0xc0
/* stores the text of fake_texrefs.h, whose size the memset has */
#define FAKE_TEXREFS 0xd0

#endif
