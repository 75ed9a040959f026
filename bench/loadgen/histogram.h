// SPDX-License-Identifier: Apache-2.0
/*
 * Log-linear histogram of times in nanoseconds: every power of two is cut into 128 equal parts, so
 * a quantile is off by less than 0.8 % whatever its size. Filled and read by one thread.
 */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>

enum {
	HISTOGRAM_PART_BITS = 7,
	HISTOGRAM_PARTS = 1 << HISTOGRAM_PART_BITS,
	HISTOGRAM_BITS = 40, /* 2^40 ns are 18 minutes; longer times count as that */
	HISTOGRAM_CELLS = (HISTOGRAM_BITS - HISTOGRAM_PART_BITS + 1) * HISTOGRAM_PARTS,
};

struct histogram {
	uint64_t cells[HISTOGRAM_CELLS];
	uint64_t nr;
	uint64_t max_ns; /* exact */
};

void histogram_add(struct histogram *h, int64_t ns);

/* The time that the fraction `q` of all entries does not exceed; 0 when there are none. */
uint64_t histogram_quantile(const struct histogram *h, double q);

#endif
