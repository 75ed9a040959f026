// SPDX-License-Identifier: Apache-2.0
/*
 * See histogram.h.
 *
 * Invariant: times below 2 * HISTOGRAM_PARTS have a cell of their own; above, the cell is named by
 * the position of the highest bit and the HISTOGRAM_PART_BITS bits behind it.
 */
#include "histogram.h"

static unsigned cell_of(uint64_t ns)
{
	unsigned shift;

	if (ns < HISTOGRAM_PARTS)
		return (unsigned)ns;
	if (ns >> HISTOGRAM_BITS)
		return HISTOGRAM_CELLS - 1;
	shift = 63 - (unsigned)__builtin_clzll(ns) - HISTOGRAM_PART_BITS;
	/* ns >> shift has its highest bit set, which steps over the cells of the powers below. */
	return shift * HISTOGRAM_PARTS + (unsigned)(ns >> shift);
}

/* The largest time that falls into the cell. */
static uint64_t cell_end(unsigned cell)
{
	unsigned shift;

	if (cell < 2 * HISTOGRAM_PARTS)
		return cell;
	shift = cell / HISTOGRAM_PARTS - 1;
	return ((uint64_t)(cell - shift * HISTOGRAM_PARTS + 1) << shift) - 1;
}

void histogram_add(struct histogram *h, int64_t ns)
{
	uint64_t value = ns > 0 ? (uint64_t)ns : 0;

	h->cells[cell_of(value)]++;
	h->nr++;
	if (value > h->max_ns)
		h->max_ns = value;
}

uint64_t histogram_quantile(const struct histogram *h, double q)
{
	uint64_t seen = 0;

	for (unsigned i = 0; i < HISTOGRAM_CELLS; i++) {
		seen += h->cells[i];
		if (seen > 0 && (double)seen >= q * (double)h->nr)
			return cell_end(i) < h->max_ns ? cell_end(i) : h->max_ns;
	}
	return h->max_ns;
}
