// SPDX-License-Identifier: Apache-2.0
/* The terminal; see term.h. */
#include "look/term.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define OUT STDOUT_FILENO
#define ESCAPE_MS 50 /* a key that begins with ESC comes as a whole; the key ESC comes alone */
#define DEFAULT_ROWS 24
#define DEFAULT_COLUMNS 80

/* Another page, whose lines do not wrap, without a cursor; and back. */
static const char enter_text[] = "\033[?1049h\033[?7l\033[?25l\033[0m\033[2J";
static const char leave_text[] = "\033[0m\033[?25h\033[?7h\033[?1049l";

/* For the handlers of signals: there is one terminal. */
static struct termios before;
static volatile sig_atomic_t is_inside, has_changed;
static int mode_fd;
static char alternate_stack[64 << 10];

/* A terminal that takes nothing, as after ^S, must not keep us from ending. */
static void leave(void)
{
	struct pollfd p = { .fd = OUT, .events = POLLOUT };
	int saved = errno;

	if (is_inside && poll(&p, 1, 0) == 1 && (p.revents & POLLOUT))
		(void)!write(OUT, leave_text, sizeof(leave_text) - 1);
	if (is_inside)
		(void)tcsetattr(mode_fd, TCSANOW, &before);
	is_inside = 0;
	errno = saved;
}

/* Keys come one by one and unseen; those that send signals still do. */
static void enter(void)
{
	struct termios now = before;
	int saved = errno;

	now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	now.c_iflag &= ~(tcflag_t)ICRNL;
	now.c_cc[VMIN] = 1;
	now.c_cc[VTIME] = 0;
	is_inside = 1; /* already: a signal may end us between these lines */
	(void)tcsetattr(mode_fd, TCSANOW, &now);
	(void)!write(OUT, enter_text, sizeof(enter_text) - 1);
	has_changed = 1;
	errno = saved;
}

/* With its default action, as if there were no handler. */
static void raise_plainly(int sig)
{
	struct sigaction plain = { .sa_handler = SIG_DFL }, ours;
	sigset_t set;

	sigaction(sig, &plain, &ours);
	sigemptyset(&set);
	sigaddset(&set, sig);
	raise(sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	/* Behind a stop. */
	sigaction(sig, &ours, NULL);
}

static void on_end(int sig)
{
	leave();
	raise_plainly(sig);
}

/* Behind wf_term_close() there is nothing to come back to. */
static void on_stop(int sig)
{
	const bool was_inside = is_inside;

	leave();
	raise_plainly(sig);
	if (was_inside)
		enter();
}

static void on_continue(int sig)
{
	if (is_inside)
		enter();
}

static void on_resize(int sig)
{
	has_changed = 1;
}

static void handle(int sig, void (*handler)(int), const sigset_t *mask)
{
	struct sigaction action = { .sa_handler = handler,
				    .sa_mask = *mask,
				    .sa_flags = SA_ONSTACK },
			 old;

	/* A signal that we were told to ignore (nohup) stays ignored. */
	if (sigaction(sig, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
		sigaction(sig, &action, NULL);
}

/* Those that we come back from. */
static void take_stops(sigset_t *out)
{
	sigemptyset(out);
	sigaddset(out, SIGWINCH);
	sigaddset(out, SIGCONT);
	sigaddset(out, SIGTSTP);
}

static void handle_signals(void)
{
	static const int ends[] = { SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGPIPE, SIGALRM,
				    SIGXCPU, SIGUSR1, SIGUSR2, SIGSEGV, SIGBUS,  SIGFPE,
				    SIGILL,  SIGABRT, SIGTRAP, SIGSYS };
	const stack_t stack = { .ss_sp = alternate_stack, .ss_size = sizeof(alternate_stack) };
	sigset_t all, stops;

	sigfillset(&all);
	take_stops(&stops);
	(void)sigaltstack(&stack, NULL);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		handle(ends[i], on_end, &all);
	/* enter() waits for as long as the terminal takes nothing: that must not keep us from ending, either. */
	handle(SIGTSTP, on_stop, &stops);
	handle(SIGCONT, on_continue, &stops);
	handle(SIGWINCH, on_resize, &stops);
}

static bool says_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

static void take_size(struct wf_term *t)
{
	struct winsize size = { 0 };

	(void)ioctl(OUT, TIOCGWINSZ, &size);
	t->rows = size.ws_row ? size.ws_row : DEFAULT_ROWS;
	t->columns = size.ws_col ? size.ws_col : DEFAULT_COLUMNS;
	if (t->rows > WF_TERM_MAX_ROWS)
		t->rows = WF_TERM_MAX_ROWS;
	if (t->columns > WF_TERM_MAX_COLUMNS)
		t->columns = WF_TERM_MAX_COLUMNS;
}

static void forget(struct wf_term *t)
{
	for (unsigned i = 0; i < WF_TERM_MAX_ROWS; i++) {
		free(t->shown[i]);
		t->shown[i] = NULL;
	}
}

static int open_in(bool *out_is_own)
{
	*out_is_own = !isatty(STDIN_FILENO);
	return *out_is_own ? open("/dev/tty", O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
}

bool wf_term_is_there(void)
{
	const char *term = getenv("TERM");
	bool is_own;
	int fd;

	if (!isatty(OUT) || !term || !*term || strcmp(term, "dumb") == 0)
		return false;
	fd = open_in(&is_own);
	if (fd >= 0 && is_own)
		close(fd);
	return fd >= 0;
}

bool wf_term_open(struct wf_term *t)
{
	const char *no_colour = getenv("NO_COLOR");

	*t = (struct wf_term){ .is_utf8 = says_utf8(), .has_colours = !no_colour || !*no_colour };
	t->in = open_in(&t->is_own_in);
	if (t->in < 0 || tcgetattr(t->in, &before) < 0)
		return false;
	mode_fd = t->in;
	handle_signals();
	enter();
	take_size(t);
	has_changed = 0;
	return true;
}

void wf_term_close(struct wf_term *t)
{
	sigset_t set, before_it;

	/* A stop in the middle would come back to the page. */
	take_stops(&set);
	sigprocmask(SIG_BLOCK, &set, &before_it);
	leave();
	sigprocmask(SIG_SETMASK, &before_it, NULL);
	forget(t);
	free(t->out);
	if (t->is_own_in && t->in >= 0)
		close(t->in);
	*t = (struct wf_term){ .in = -1 };
}

static void append(struct wf_term *t, const char *text, size_t len)
{
	if (t->out_len + len > t->out_room) {
		size_t room = 2 * (t->out_len + len);
		char *p = realloc(t->out, room);

		if (!p)
			return;
		t->out = p;
		t->out_room = room;
	}
	memcpy(t->out + t->out_len, text, len);
	t->out_len += len;
}

/* A signal between the look at has_changed and the wait would be seen late: it is let in only by ppoll(). */
static int wait_for_bytes(struct wf_term *t, int timeout_ms)
{
	const struct timespec limit = { .tv_sec = timeout_ms / 1000,
					.tv_nsec = timeout_ms % 1000 * 1000000L };
	struct pollfd p = { .fd = t->in, .events = POLLIN };
	sigset_t let_in, set;
	ssize_t n = 0;
	int ret = -1;

	take_stops(&set);
	sigprocmask(SIG_BLOCK, &set, &let_in);
	if (!has_changed)
		ret = ppoll(&p, 1, timeout_ms < 0 ? NULL : &limit, &let_in);
	sigprocmask(SIG_SETMASK, &let_in, NULL);
	if (has_changed) {
		has_changed = 0;
		take_size(t);
		forget(t);
		append(t, "\033[0m\033[2J", 8);
		return WF_KEY_REDRAW;
	}
	if (ret <= 0)
		return WF_KEY_NONE;
	n = read(t->in, t->pending + t->nr_pending, sizeof(t->pending) - t->nr_pending);
	if (n <= 0 && !(n < 0 && (errno == EINTR || errno == EAGAIN)))
		return WF_KEY_GONE;
	t->nr_pending += n > 0 ? (size_t)n : 0;
	return WF_KEY_NONE;
}

static int key_of_final(char final, int number)
{
	switch (final) {
	case 'A':
		return WF_KEY_UP;
	case 'B':
		return WF_KEY_DOWN;
	case 'C':
		return WF_KEY_RIGHT;
	case 'D':
		return WF_KEY_LEFT;
	case 'H':
		return WF_KEY_HOME;
	case 'F':
		return WF_KEY_END;
	case '~':
		return number == 5                  ? WF_KEY_PAGE_UP
		       : number == 6                ? WF_KEY_PAGE_DOWN
		       : number == 1 || number == 7 ? WF_KEY_HOME
		       : number == 4 || number == 8 ? WF_KEY_END
						    : WF_KEY_NONE;
	default:
		return WF_KEY_NONE;
	}
}

/* ESC [ 5 ~ or ESC O A. Returns its bytes, 0: the end is missing. */
static size_t parse_sequence(const unsigned char *s, size_t nr, int *out_key)
{
	int number = 0;
	size_t i = 2;

	if (nr < 2)
		return 0;
	*out_key = WF_KEY_ESCAPE;
	if (s[1] != '[' && s[1] != 'O')
		return 1; /* two keys, quickly */
	for (; i < nr && s[i] >= 0x20 && s[i] < 0x40; i++) {
		if (s[i] >= '0' && s[i] <= '9' && number < 1000)
			number = 10 * number + (s[i] - '0');
		else if (s[i] == ';')
			number += 1000; /* what follows are Shift and its like */
	}
	if (i == nr)
		return 0;
	*out_key = key_of_final((char)s[i], number % 1000);
	return i + 1;
}

static int take_key(struct wf_term *t, size_t bytes, int key)
{
	memmove(t->pending, t->pending + bytes, t->nr_pending - bytes);
	t->nr_pending -= bytes;
	return key;
}

int wf_term_key(struct wf_term *t, int timeout_ms)
{
	for (;;) {
		int key = WF_KEY_NONE, special;
		size_t bytes = 0;

		if (t->nr_pending && t->pending[0] != 27)
			return take_key(t, 1, t->pending[0]);
		if (t->nr_pending)
			bytes = parse_sequence(t->pending, t->nr_pending, &key);
		if (bytes) {
			key = take_key(t, bytes, key);
			if (key != WF_KEY_NONE)
				return key;
			continue;
		}
		bytes = t->nr_pending;
		if (bytes == sizeof(t->pending))
			t->nr_pending = 0; /* no key is that long */
		special = wait_for_bytes(t, bytes ? ESCAPE_MS : timeout_ms);
		if (special != WF_KEY_NONE)
			return special;
		if (t->nr_pending != bytes)
			continue;
		if (!bytes)
			return WF_KEY_NONE;
		t->nr_pending = 0;
		if (bytes == 1)
			return WF_KEY_ESCAPE;
	}
}

void wf_term_show(struct wf_term *t, unsigned row, const struct wf_line *l)
{
	char place[32];

	if (row >= t->rows || (t->shown[row] && strcmp(t->shown[row], l->text) == 0))
		return;
	free(t->shown[row]);
	t->shown[row] = strdup(l->text);
	append(t, place, (size_t)snprintf(place, sizeof(place), "\033[%u;1H\033[0m", row + 1));
	append(t, l->text, l->len);
	append(t, "\033[0m", 4);
	/* Behind a full line the cursor is still on its last character. */
	if (l->at < t->columns)
		append(t, "\033[K", 3);
}

void wf_term_flush(struct wf_term *t)
{
	size_t done = 0;

	while (done < t->out_len) {
		ssize_t n = write(OUT, t->out + done, t->out_len - done);

		if (n < 0 && errno != EINTR)
			break; /* wf_term_key() sees that it is gone */
		done += n > 0 ? (size_t)n : 0;
	}
	t->out_len = 0;
}
