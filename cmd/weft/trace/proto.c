// SPDX-License-Identifier: Apache-2.0
/* Protocol buffers; see proto.h. */
#include "trace/proto.h"

#include <stdlib.h>
#include <string.h>

#define VARINT 0u
#define BYTES 2u
#define MOST_BYTES 10 /* of a number */

static bool make_room(struct wf_proto *p, size_t more)
{
	size_t room = p->room ? p->room : 256;
	void *data;

	if (p->is_bad)
		return false;
	if (p->room - p->len >= more)
		return true;
	while (room - p->len < more)
		room *= 2;
	data = realloc(p->data, room);
	if (!data) {
		p->is_bad = true;
		return false;
	}
	p->data = data;
	p->room = room;
	return true;
}

static size_t put(unsigned char *out, uint64_t value)
{
	size_t n = 0;

	for (; value > 0x7f; value >>= 7)
		out[n++] = (unsigned char)(value | 0x80);
	out[n++] = (unsigned char)value;
	return n;
}

static void add(struct wf_proto *p, uint64_t value)
{
	if (make_room(p, MOST_BYTES))
		p->len += put(p->data + p->len, value);
}

void wf_proto_number(struct wf_proto *p, unsigned field, uint64_t value)
{
	add(p, field << 3 | VARINT);
	add(p, value);
}

void wf_proto_raw(struct wf_proto *p, const void *data, size_t len)
{
	if (!len || !make_room(p, len))
		return;
	memcpy(p->data + p->len, data, len);
	p->len += len;
}

void wf_proto_text(struct wf_proto *p, unsigned field, const char *text)
{
	size_t len = strlen(text);

	add(p, field << 3 | BYTES);
	add(p, len);
	wf_proto_raw(p, text, len);
}

size_t wf_proto_begin(struct wf_proto *p, unsigned field)
{
	add(p, field << 3 | BYTES);
	return p->len;
}

/* Its length stands in front of it, in as few bytes as it takes. */
void wf_proto_end(struct wf_proto *p, size_t begun)
{
	unsigned char number[MOST_BYTES];
	size_t len = p->len - begun, n = put(number, len);

	if (!make_room(p, n))
		return;
	memmove(p->data + begun + n, p->data + begun, len);
	memcpy(p->data + begun, number, n);
	p->len += n;
}

void wf_proto_done(struct wf_proto *p)
{
	free(p->data);
	*p = (struct wf_proto){ 0 };
}
