// SPDX-License-Identifier: Apache-2.0
/*
 * `weft watch`: restarts a program that dies, and keeps the picture of the moment of its death or stall.
 *
 * Files: watch.c (options), supervise.c (the child's life), foreign.c (--pid), by_name.c (--process), names.c (its
 * processes), connector.c (the kernel's news of them), ended.c (how one has ended), stall.c (the look from outside), folder.c (what
 * is kept), save.c (what is written there), helper.c (processes of ours, and signals),
 * door.c (a program that says that it dies), notify.c (what it tells its service manager), clock.c (time), family.c (which
 * processes are ours).
 *
 * Invariant: one process, one loop. Every wait is in wf_watch_round(), so that signals are passed on at any time.
 */
#ifndef WF_WATCH_H
#define WF_WATCH_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#define WF_WATCH_MS 1000000LL
#define WF_WATCH_S (1000 * WF_WATCH_MS)
#define WF_WATCH_NEVER INT64_MAX
#define WF_WATCH_TAIL_BYTES (64u << 10) /* of standard error that are kept */
#define WF_WATCH_RESTARTS_MAX 1000
#define WF_WATCH_NAMED_MAX 900 /* of --process: they fit in the customary 1,024 descriptors */
#define WF_WATCH_NAMED_PAUSE WF_WATCH_S /* from a process's start to the word that it has ended */

struct sockaddr_un;

/* The result of one look from outside. */
struct wf_watch_look {
	uint64_t switches; /* of all threads: another number means that some thread got on */
	uint64_t circle; /* a number for all who wait in circles, and how far they got; 0: nobody */
	unsigned nr_ready, nr_circle;
	/* The longest call of a thread that has what others wait for; of both times the shorter one. */
	int64_t held_ns, held_tid, held_call;
	unsigned nr_held; /* who wait for it */
};

struct wf_watch_stall {
	struct wf_watch_look last;
	int64_t idle_since, circle_since; /* WF_WATCH_NEVER: not so */
	int64_t next_look;
	bool is_told;
};

/* A process of --process. */
struct wf_watch_process {
	pid_t pid;
	int pidfd;
	bool is_dropped; /* told, or another program by now */
	int64_t seen_at;
	int64_t over_at; /* WF_WATCH_NEVER: it lives */
	int status;
	bool has_status;
	int64_t told_at; /* by the connector; 0: not yet */
	int told_status;
	struct wf_watch_stall stall;
	int64_t look_from; /* for the first time; 0: that was done */
};

struct wf_watch_names {
	const char *name;
	int wake;             /* an epoll set: something is to be taken */
	int timer, connector; /* -1: there is none, and the timer says each second when to look */
	const char *why_looking;
	int64_t looked_at;
	bool has_lost; /* messages, since the last look */
	unsigned nr_lost;
	struct wf_watch_process processes[WF_WATCH_NAMED_MAX];
	size_t nr, max;
	bool is_full; /* some are not held */
};

/* News of a process. */
enum wf_watch_news_kind {
	WF_WATCH_NEWS_LOST, /* some of them, of whatever process */
	WF_WATCH_NEWS_EXEC,
	WF_WATCH_NEWS_CHANGED, /* it is there, or has another name */
	WF_WATCH_NEWS_EXIT,
};

struct wf_watch_news {
	enum wf_watch_news_kind kind;
	pid_t pid;
	int status; /* of an exit, as wait() says it */
};

struct wf_watch {
	/* options */
	char name[64];
	char **command; /* or the hook of --pid and --process */
	const char *dir, *hook;
	pid_t foreign;       /* --pid; -1: --process; 0: a child of ours */
	const char *process; /* --process; NULL: none */
	bool tells_exit, tells_stall;
	int max, keep;
	int64_t max_within_ns, delay_ns, delay_max_ns, grace_ns;
	int64_t stall_ns; /* 0: no looks */
	bool stall_restarts;
	/* ours */
	int base; /* the directory in which all folders are */
	int signals;
	sigset_t old_mask;
	bool had_sigpipe_ignored;
	int err_in, err_out; /* the child's standard error: our end, its end */
	bool is_err_gone;    /* nobody reads ours */
	char tail[WF_WATCH_TAIL_BYTES];
	uint64_t tail_bytes; /* since the child's start */
	/* processes; 0: none */
	pid_t child, helper;
	int child_status, helper_status;
	bool is_child_over, is_helper_over;
	int64_t started_at, kill_at;
	int64_t started_wall_s;
	long oom_before;     /* -1: not known */
	bool is_ending;      /* we were told to */
	bool is_ended_by_us; /* since it stalled */
	bool was_killed;     /* the grace was over */
	int ended_by;        /* the signal that told us */
	unsigned restarts;   /* so far */
	struct wf_watch_stall stall;
	struct wf_watch_names *names; /* NULL: without --process */
	/* the door */
	struct wf_lastword_page *page; /* NULL: there is none */
	int door;                      /* an eventfd: look at the page; -1: none */
	int dying_folder;              /* where its dump is; -1: not dumped */
	char dying_saved[300];
	int nr_dying_dumps;
	bool has_trace; /* beside the last dumps */
	/* the service manager */
	int notify,
		to_manager; /* sockets: the program's messages, and where they go; -1: there is no manager */
	struct sockaddr_un *manager;
	socklen_t manager_bytes;
};

/* An event that is told and saved. */
struct wf_watch_event {
	const char *kind; /* "death", "stall", "exit" */
	char what[160];   /* "SIGSEGV, core dumped" */
	char suffix[24];  /* "SEGV", "exit3", "stall" */
	pid_t pid;
	int status;      /* of a death, as wait() says it */
	bool is_alive;   /* and can be dumped */
	char saved[300]; /* the folder; "": none */
};

/* --- clock.c --- */

int64_t wf_watch_now(void);
/* "3 h", "0.1 s", "10 ms". */
const char *wf_watch_span(char out[32], int64_t ns);

/* --- family.c --- */

/* Is it a child of ours, or below one? A process that has lost its parent is below us only while we take orphans in. */
bool wf_watch_is_ours(pid_t pid);

/* --- ended.c --- */

/* Has the process ended? It may not have been waited for. */
bool wf_watch_ended(int pidfd);
/* Is its number still its own? */
bool wf_watch_ended_is_there(int pidfd);
/* How it has ended, as wait() says it. False: that cannot be known, or not yet. */
bool wf_watch_ended_status(int pidfd, pid_t pid, int *out);
/* The rest of /proc/PID/stat from the end of the name on: ") S 1 ...". NULL: there is no such process. */
#define WF_WATCH_STAT_BYTES 1536u
const char *wf_watch_ended_stat(pid_t pid, char text[WF_WATCH_STAT_BYTES]);

/* --- connector.c --- */

/* A socket that can be read when there are news; -1: there are none here, and why. */
int wf_watch_connector_open(const char **why);
void wf_watch_connector_close(int fd);
/* False: there are no more now. */
bool wf_watch_connector_next(int fd, struct wf_watch_news *out);

/* --- names.c --- */

/* False, and errno: it cannot be. */
bool wf_watch_names_open(struct wf_watch *w);
void wf_watch_names_close(struct wf_watch_names *n);
/* Note what has happened. */
void wf_watch_names_take(struct wf_watch_names *n);
/* Look at all processes. False: /proc is not there. */
bool wf_watch_names_look(struct wf_watch_names *n);
/* When its end is to be told; WF_WATCH_NEVER: not yet. */
int64_t wf_watch_names_due(const struct wf_watch_process *p);
/* False: nobody knows. */
bool wf_watch_names_status(struct wf_watch_process *p, int *out);
/* Forget those that were dropped. */
void wf_watch_names_tidy(struct wf_watch_names *n);

/* --- helper.c --- */

bool wf_watch_begin(struct wf_watch *w);
/* In a child, before it execs: signals as they were for us. */
void wf_watch_restore(const struct wf_watch *w);
/* Wait for the next thing to happen, until the deadline at most: pass signals on, reap, copy standard error. */
void wf_watch_round(struct wf_watch *w, int64_t deadline);
/* Take the rest out of the pipe. */
void wf_watch_drain(struct wf_watch *w);
/* Run argv with its output into out (-1: none), for so long at most. The status; -1: it could not be run, or was ended. */
int wf_watch_run(struct wf_watch *w, char *const *argv, int out, int64_t limit_ns);
/* The same for a function of ours in a process of its own. */
int wf_watch_call(struct wf_watch *w, void (*function)(void *arg), void *arg, int64_t limit_ns);
/* End all processes that are ours: asked first, and after the grace killed. */
void wf_watch_end_all(struct wf_watch *w);
/* One line on standard error with the time; dropped where it would wait. */
void __attribute__((format(printf, 3, 4)))
wf_watch_say(const struct wf_watch *w, pid_t pid, const char *format, ...);
/* Tell --hook; the event's fields are in its environment. */
void wf_watch_tell_hook(struct wf_watch *w, const struct wf_watch_event *e, char *const *argv);
/* --- stall.c --- */

/* When the next look is due, or never. */
int64_t wf_watch_stall_due(const struct wf_watch *w);
/* Look, if it is due. True: the process has been found stalled now, and it has not been told yet; *why says how. */
bool wf_watch_stall_look(struct wf_watch *w, pid_t pid, char *why, size_t bytes);
void wf_watch_stall_reset(struct wf_watch *w);

/* --- folder.c --- */

/* Makes and opens weft-watch/ below --dir; false after one line. */
bool wf_watch_folders_open(struct wf_watch *w);
/* A new folder for this event; its descriptor, or -errno. Its name goes to out. */
int wf_watch_folder_new(struct wf_watch *w, const struct wf_watch_event *e, char *out,
			size_t bytes);
/* Remove the oldest until --keep and the bound of bytes are kept. */
void wf_watch_folders_trim(const struct wf_watch *w);

/* --- save.c --- */

/* Fills e->saved; trouble is one line. */
void wf_watch_save(struct wf_watch *w, struct wf_watch_event *e);
/* The dump of a child that waits at the door; the rest follows when it has died. */
void wf_watch_save_dying(struct wf_watch *w, int sig);

/* --- cause.c --- */

/* How often the kernel has killed for want of memory in the cgroup of this process; -1: not readable. */
long wf_watch_oom_kills(void);
void wf_watch_describe(const struct wf_watch *w, struct wf_watch_event *e);
/* The core that the process left, if it lies where the kernel's pattern says. */
bool wf_watch_find_core(const struct wf_watch *w, const struct wf_watch_event *e, char *out,
			size_t bytes);

/* --- door.c --- */

/* Without a door, for whatever reason, all else goes on. */
void wf_watch_door_open(struct wf_watch *w);
/* In the child, before it becomes the program: the page is its. */
void wf_watch_door_give(const struct wf_watch *w);
/* Does the child wait there? */
bool wf_watch_door_is_dying(const struct wf_watch *w);
/* The signal that it says it dies of. */
int wf_watch_door_signal(const struct wf_watch *w);
/* Let it die. */
void wf_watch_door_release(struct wf_watch *w);
/* For the next child. */
void wf_watch_door_reset(struct wf_watch *w);

/* --- notify.c --- */

/* If a service manager wants to hear from us: its NOTIFY_SOCKET is taken, and the children are given one of ours. */
void wf_watch_notify_open(struct wf_watch *w);
/* In the child: the manager's WATCHDOG_PID means it. */
void wf_watch_notify_give(pid_t parent);
/* Pass on what has come. */
void wf_watch_notify_pass(const struct wf_watch *w);
/* The next program takes its time to say that itself. */
void wf_watch_notify_alive(const struct wf_watch *w);

/* --- supervise.c, foreign.c, by_name.c --- */

int wf_watch_supervise(struct wf_watch *w);
int wf_watch_foreign(struct wf_watch *w);
int wf_watch_by_name(struct wf_watch *w);

#endif
