// SPDX-License-Identifier: Apache-2.0
/*
 * Pieces of pictures, and of the page that has them: plain SVG 1.1 with no script, font or style from elsewhere.
 *
 * Used by: bench/models_svg.c, bench/grid_svg.c, bench/page.c.
 */
#ifndef WF_SVG_H
#define WF_SVG_H

#include <stdio.h>

#define WF_SVG_COLOUR "#8a9bb0"
#define WF_SVG_COLOUR_WEFT "#d9541e"
#define WF_SVG_COLOUR_THIRD "#2a9d8f"

/*
 * A file of its own begins with the first; inside a page there is only the second. Classes of text: t, a title; n, a note;
 * l, a label that ends at x; and of lines: g, a grid. Their colours are those of paper or of a dark screen.
 */
void wf_svg_prolog(FILE *out);
void wf_svg_begin(FILE *out, int width, int height, const char *title);
void wf_svg_end(FILE *out);
/* Text of an element or of an attribute. */
void wf_svg_escaped(FILE *out, const char *text);
/* attributes: as they stand in the tag. */
void wf_svg_text(FILE *out, double x, double y, const char *attributes, const char *text);

#endif
