// SPDX-License-Identifier: Apache-2.0
// A pipeline: one thread reads lines, several hash them, main prints them in the order in which they came. A line carries
// the channel for its answer, and main takes the lines from a second channel in their order: nobody has to sort.
//
// Usage: pipeline [hashing threads] < text
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

#define WAITING 64 /* lines that may be under way: a reader that is too fast waits */

struct line {
	char *text;
	uint64_t hash;
	weft_chan *done; /* of tokens */
};

static weft_chan *jobs, *in_order;

static int read_lines(void *arg)
{
	struct line l = { 0 }, *p;
	size_t room = 0;
	ssize_t n;
	int ret = 0;

	(void)arg;
	while (ret == 0 && (n = getline(&l.text, &room, stdin)) > 0) {
		l.text[strcspn(l.text, "\n")] = '\0';
		l.done = weft_chan_new(0, 1, "done");
		p = malloc(sizeof(*p));
		if (!p || !l.done) {
			ret = -ENOMEM;
			break;
		}
		*p = l;
		l.text = NULL;
		room = 0;
		ret = weft_chan_send(in_order, &p, WEFT_NEVER);
		if (ret == 0)
			ret = weft_chan_send(jobs, &p, WEFT_NEVER);
	}
	free(l.text);
	weft_chan_close(jobs);
	weft_chan_close(in_order);
	return ret;
}

static int hash_lines(void *arg)
{
	struct line *l;

	(void)arg;
	while (weft_chan_recv(jobs, &l, WEFT_NEVER) == 0) {
		l->hash = 0xcbf29ce484222325; /* FNV-1a, ten times over: some work */
		for (int i = 0; i < 10; i++)
			for (char *c = l->text; *c; c++)
				l->hash = (l->hash ^ (unsigned char)*c) * 0x100000001b3;
		weft_chan_give(l->done, WEFT_NEVER);
	}
	return 0;
}

int main(int argc, char **argv)
{
	weft_group g = { .name = "pipeline" };
	int nr = argc > 1 ? atoi(argv[1]) : 4, ret;
	struct line *l;

	jobs = weft_chan_new(sizeof(l), WAITING, "jobs");
	in_order = weft_chan_new(sizeof(l), WAITING, "in order");
	if (!jobs || !in_order || nr < 1)
		return 1;
	ret = weft_group_go(&g, read_lines, NULL);
	for (int i = 0; i < nr && ret == 0; i++)
		ret = weft_group_go(&g, hash_lines, NULL);
	if (ret < 0) {
		weft_group_cancel(&g);
		(void)weft_group_wait(&g);
		return 1;
	}
	while (weft_chan_recv(in_order, &l, WEFT_NEVER) == 0) {
		weft_chan_take(l->done, WEFT_NEVER);
		printf("%016llx %s\n", (unsigned long long)l->hash, l->text);
		weft_chan_free(l->done);
		free(l->text);
		free(l);
	}
	ret = weft_group_wait(&g);
	weft_chan_free(jobs);
	weft_chan_free(in_order);
	return ret < 0;
}
