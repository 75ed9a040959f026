// SPDX-License-Identifier: Apache-2.0
/* See svg.h. */
#include "svg.h"

void wf_svg_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", out);
			break;
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		default:
			fputc(*text, out);
		}
	}
}

void wf_svg_prolog(FILE *out)
{
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", out);
}

void wf_svg_begin(FILE *out, int width, int height, const char *title)
{
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n"
		"<style>.l{text-anchor:end}.n{fill:#444;font-size:11px}.t{font-size:13px;"
		"font-weight:bold}.g{stroke:#ddd}\n"
		"@media screen and (prefers-color-scheme:dark){svg{fill:#e8e6e3}.bg{fill:#1b1a19}"
		".n{fill:#b0aca6}.g{stroke:#444}}</style>\n"
		"<title>",
		width, height, width, height);
	wf_svg_escaped(out, title);
	fprintf(out, "</title>\n<rect class=\"bg\" width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
		width, height);
	wf_svg_text(out, 16, 26, "font-size=\"18\" font-weight=\"bold\"", title);
}

void wf_svg_end(FILE *out)
{
	fputs("</svg>\n", out);
}

void wf_svg_text(FILE *out, double x, double y, const char *attributes, const char *text)
{
	fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
	wf_svg_escaped(out, text);
	fputs("</text>\n", out);
}
