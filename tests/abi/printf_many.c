// SPDX-License-Identifier: Apache-2.0
/*
 * printf from 100 threads on one stream: every line arrives once and whole.
 */
#include "check.h"

#define NR 100
#define LINES 50

static FILE *stream;
static char seen[NR][LINES];

static void *prints(void *arg)
{
	int me = (int)(intptr_t)arg;

	for (int i = 0; i < LINES; i++) {
		fprintf(stream, "thread %d ", me + 1000);
		flockfile(stream);
		fprintf(stream, "\nline %d of ", i + 1000);
		fprintf(stream, "thread %d end\n", me + 1000);
		funlockfile(stream);
	}
	return NULL;
}

static void *reads(void *arg)
{
	FILE *in = (FILE *)arg;
	char text[4096];
	intptr_t nr_lines = 0;

	while (fgets(text, sizeof(text), in)) {
		int line, thread, len = 0;

		if (sscanf(text, "line %d of thread %d end%n", &line, &thread, &len) != 2)
			continue;
		CHECK_EQ(text[len], '\n');
		CHECK_EQ(seen[thread - 1000][line - 1000]++, 0);
		nr_lines++;
	}
	return (void *)nr_lines;
}

int main(void)
{
	pthread_t t[NR], reader;
	int fds[2];

	CHECK_SYS(pipe(fds));
	stream = fdopen(fds[1], "w");
	FILE *in = fdopen(fds[0], "r");

	setvbuf(stream, NULL, _IOLBF, 512);
	reader = start(reads, in);
	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(prints, (void *)i);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	fclose(stream);
	CHECK_EQ((intptr_t)join(reader), NR * LINES);
	fclose(in);
	ok("5000 lines from 100 threads");
	return finish();
}
