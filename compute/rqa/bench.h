/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What obk-rqa-bench measures on the CPU and on a GPU: synthetic series, the same each time a
 * program asks in the same order. One thread.
 */
#ifndef OBK_RQA_BENCH_H
#define OBK_RQA_BENCH_H

#define BENCH_SERIES  310 /* gaze recordings */
#define BENCH_LONGEST 3260

double bench_seconds(void);
int bench_compare(const void *a, const void *b); /* of doubles, for qsort */
/* Roessler, Euler steps of 0.05, every fourth kept. */
void bench_rossler(double *data, unsigned n);
/* Fixations with tremor and saccades between them, x and y in the unit square, six decimals. */
void bench_gaze(double *data, unsigned n);
/* Lengths of BENCH_SERIES recordings as one published data set of gaze has them. */
void bench_lengths(unsigned *ret_lengths);
/* obk-rqa-bench --device gpu ...; the exit code. */
int bench_gpu(int argc, char **argv);

#endif
