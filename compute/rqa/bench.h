/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The part of obk-rqa-bench that the CPU and GPU benchmarks share: synthetic series. Programs that
 * request the series in the same order get the same data. Single thread.
 */
#ifndef OBK_RQA_BENCH_H
#define OBK_RQA_BENCH_H

#define BENCH_SERIES  310 /* gaze recordings */
#define BENCH_LONGEST 3260

double bench_seconds(void);
int bench_compare(const void *a, const void *b); /* of doubles, for qsort */
/* Roessler system, Euler steps of 0.05; every fourth sample is kept. */
void bench_rossler(double *data, unsigned n);
/*
 * Gaze data: fixations with tremor, saccades between them; x and y in the unit square, six
 * decimals.
 */
void bench_gaze(double *data, unsigned n);
/* The lengths of BENCH_SERIES recordings, distributed as in one published gaze data set. */
void bench_lengths(unsigned *ret_lengths);
/* Runs `obk-rqa-bench --device gpu ...` and returns the exit code. */
int bench_gpu(int argc, char **argv);

#endif
