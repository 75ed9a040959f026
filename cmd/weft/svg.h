// SPDX-License-Identifier: Apache-2.0
/*
 * Pieces of pictures: plain SVG 1.1 with no script, font or style from elsewhere.
 *
 * Used by: bench/models_svg.c, bench/grid_svg.c.
 */
#ifndef WF_SVG_H
#define WF_SVG_H

#include <stdio.h>

#define WF_SVG_COLOUR "#8a9bb0"
#define WF_SVG_COLOUR_WEFT "#c2410c"

void wf_svg_begin(FILE *out, int width, int height, const char *title);
void wf_svg_end(FILE *out);
/* attributes: as they stand in the tag. */
void wf_svg_text(FILE *out, double x, double y, const char *attributes, const char *text);

#endif
