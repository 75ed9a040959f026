// SPDX-License-Identifier: Apache-2.0
/* Pages of text over the table; see live.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "look/page.h"
#include "look/pages.h"

#define MAX_TEXT (1u << 20)
#define LOOK_MS 20

static const char help_text[] =
	"weft top: what the threads of a program do\n"
	"\n"
	"  t           threads\n"
	"  g           groups: threads that wait for the same\n"
	"  l           locks: mutexes that threads wait for, and who holds them\n"
	"  w           workers, and the other kernel threads\n"
	"  a           all processes under weft; Enter chooses one\n"
	"\n"
	"  arrows, PgUp, PgDn, Home, End    move; left and right leave columns out\n"
	"  < >         sort by another column, which stands out in the head\n"
	"  r           the other way round\n"
	"  /           show only rows with this text; Esc shows all again\n"
	"  p, space    pause, and go on\n"
	"  + -         look less often, more often\n"
	"  Enter       the stack of one thread. The process is stopped for that, some milliseconds:\n"
	"              the page says for how long\n"
	"  D           dump: the stacks of all threads into a file here\n"
	"  T           trace: what the threads did last, into a file here for https://ui.perfetto.dev;\n"
	"              the program must have been started with weft run --record\n"
	"  q           quit\n"
	"\n"
	"CPU% and SWITCHES/S are those since the look before. Nobody is stopped for a look, so each row\n"
	"was true at some moment, not all at the same one. Of more than 50,000 threads a part is looked\n"
	"at each time (\"1 in 8 read\"), and the others are shown as they were.\n";

static size_t count_lines(const char *text)
{
	size_t nr = 0;

	for (; *text; text++)
		nr += *text == '\n';
	return nr;
}

static const char *nth_line(const char *text, size_t n)
{
	while (n-- && *text) {
		const char *end = strchr(text, '\n');

		text = end ? end + 1 : text + strlen(text);
	}
	return text;
}

static void draw_text(struct wf_live *l, const char *text, size_t first)
{
	const char *at = nth_line(text, first);
	struct wf_line line;

	for (unsigned row = 0; row < l->term.rows; row++) {
		char one[1024];
		size_t len = strcspn(at, "\n");

		wf_line_begin(&l->term, &line);
		if (row + 1 == l->term.rows) {
			wf_line_style(&line, WF_STYLE_REVERSE);
			wf_line_add(&line, " Enter, q: back   arrows, PgUp, PgDn: move");
			wf_line_fill(&line);
		} else {
			snprintf(one, sizeof(one), "%.*s", (int)len, at);
			wf_line_add(&line, one);
			at += at[len] ? len + 1 : len;
		}
		wf_term_show(&l->term, row, &line);
	}
	wf_term_flush(&l->term);
}

static bool show_text(struct wf_live *l, const char *text)
{
	size_t nr = count_lines(text), first = 0;

	for (;;) {
		size_t page = l->term.rows > 1 ? l->term.rows - 1 : 1;
		size_t last = nr > page ? nr - page : 0;

		if (first > last)
			first = last;
		draw_text(l, text, first);
		switch (wf_term_key(&l->term, -1)) {
		case WF_KEY_GONE:
			return false;
		case WF_KEY_UP:
			first -= first > 0;
			break;
		case WF_KEY_DOWN:
			first++;
			break;
		case WF_KEY_PAGE_UP:
			first -= first > page ? page : first;
			break;
		case WF_KEY_PAGE_DOWN:
		case ' ':
			first += page;
			break;
		case WF_KEY_HOME:
			first = 0;
			break;
		case WF_KEY_END:
			first = last;
			break;
		case 'q':
		case 'Q':
		case '?':
		case '\r':
		case '\n':
		case WF_KEY_ESCAPE:
			return true;
		default:
			break;
		}
	}
}

bool wf_pages_help(struct wf_live *l)
{
	return show_text(l, help_text);
}

/* `weft dump` in a process of its own: what it holds goes on when it dies, and a stranger's files are read there. */
static pid_t start_dump(char *const *argv, int out, int err)
{
	pid_t pid = fork();
	int null;

	if (pid)
		return pid;
	null = open("/dev/null", O_RDONLY);
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	execv("/proc/self/exe", argv);
	_exit(127);
}

struct text {
	char *bytes;
	size_t nr;
};

/* Takes the output that has come so far, and drops it past the bound. False: that was all. */
static bool take_output(int fd, struct text *text)
{
	char piece[4096];
	ssize_t n;

	while ((n = read(fd, piece, sizeof(piece))) > 0) {
		char *p = text->nr + (size_t)n < MAX_TEXT
				  ? realloc(text->bytes, text->nr + (size_t)n + 1)
				  : NULL;

		if (!p)
			continue;
		text->bytes = p;
		memcpy(p + text->nr, piece, (size_t)n);
		text->nr += (size_t)n;
		p[text->nr] = '\0';
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Runs it, with its output from fd. A key ends it early. Its exit status; -1: it was ended. */
static int follow_dump(struct wf_live *l, pid_t pid, int fd, struct text *text)
{
	bool is_open = true;
	int status = 0;

	while (is_open && (is_open = take_output(fd, text))) {
		int key = wf_term_key(&l->term, LOOK_MS);

		if (key == 'q' || key == WF_KEY_ESCAPE || key == WF_KEY_GONE)
			kill(pid, SIGKILL);
		else if (key == WF_KEY_REDRAW)
			wf_page_draw(l);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The output of the command, on standard error and, where that is not file (-1: none), on standard output; NULL: nothing. */
static char *run_dump(struct wf_live *l, char *const *argv, int file, int *out_status)
{
	struct text text = { 0 };
	int ends[2];
	pid_t pid;

	*out_status = -1;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return NULL;
	(void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
	pid = start_dump(argv, file < 0 ? ends[1] : file, ends[1]);
	close(ends[1]);
	if (pid > 0)
		*out_status = follow_dump(l, pid, ends[0], &text);
	close(ends[0]);
	return text.bytes;
}

static void say_why(struct wf_live *l, const char *what, const char *text, int status)
{
	if (status < 0)
		wf_page_say(l, true, "%s: interrupted", what);
	else
		wf_page_say(l, true, "%s: %.*s", what, text ? (int)strcspn(text, "\n") : 1,
			    text ? text : "?");
}

bool wf_pages_stack(struct wf_live *l, int64_t tid)
{
	char weft[] = "weft", dump[] = "dump", thread[] = "--thread", pid[16], number[32];
	char *const argv[] = { weft, dump, thread, number, pid, NULL };
	bool is_there = true;
	int status;
	char *text;

	snprintf(pid, sizeof(pid), "%d", l->pid);
	snprintf(number, sizeof(number), "%lld", (long long)tid);
	wf_page_say(l, false, "reading the stack of thread %s", number);
	wf_page_draw(l);
	text = run_dump(l, argv, -1, &status);
	l->message[0] = '\0';
	if (text && status == 0)
		is_there = show_text(l, text);
	else
		say_why(l, "no stack", text, status);
	free(text);
	return is_there;
}

/* Of a file in this folder. */
static void name_file(const struct wf_live *l, const char *what, const char *ending, char *out,
		      size_t bytes)
{
	time_t now = time(NULL);
	char when[32] = "";
	struct tm tm;

	if (localtime_r(&now, &tm))
		(void)strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &tm);
	snprintf(out, bytes, "weft-%s-%d-%s.%s", what, l->pid, when, ending);
}

/* Never over anything. */
static int new_file(const struct wf_live *l, char *out, size_t bytes)
{
	name_file(l, "dump", "txt", out, bytes);
	return open(out, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

void wf_pages_dump(struct wf_live *l)
{
	char weft[] = "weft", dump[] = "dump", pid[16], name[64];
	char *const argv[] = { weft, dump, pid, NULL };
	int fd = new_file(l, name, sizeof(name)), status;
	char *text;

	if (fd < 0) {
		wf_page_say(l, true, "cannot write %s: %s", name, strerror(errno));
		return;
	}
	snprintf(pid, sizeof(pid), "%d", l->pid);
	wf_page_say(l, false, "dumping; q interrupts");
	wf_page_draw(l);
	text = run_dump(l, argv, fd, &status);
	close(fd);
	if (status == 0) {
		wf_page_say(l, false, "wrote %s", name);
	} else {
		(void)unlink(name);
		say_why(l, "no dump", text, status);
	}
	free(text);
}

void wf_pages_trace(struct wf_live *l)
{
	char weft[] = "weft", trace[] = "trace", last[] = "--last", span[] = "5s", to[] = "-o";
	char quiet[] = "--quiet", pid[16], name[64];
	char *const argv[] = { weft, trace, last, span, quiet, to, name, pid, NULL };
	int status;
	char *text;

	name_file(l, "trace", "pftrace", name, sizeof(name));
	if (access(name, F_OK) == 0) {
		wf_page_say(l, true, "%s is there already", name);
		return;
	}
	snprintf(pid, sizeof(pid), "%d", l->pid);
	wf_page_say(l, false, "tracing; q interrupts");
	wf_page_draw(l);
	text = run_dump(l, argv, -1, &status);
	if (status == 0)
		wf_page_say(l, false, "wrote %s", name);
	else
		say_why(l, "no trace", text, status);
	free(text);
}
