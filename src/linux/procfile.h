// SPDX-License-Identifier: Apache-2.0
/* The files of /proc in which threads show; see procfile.c. */
#ifndef WF_LINUX_PROCFILE_H
#define WF_LINUX_PROCFILE_H

#include "linux/procpath.h"

/* Files whose text we make: comm, stat, status, schedstat. A memory file that holds it, or -errno. */
bool lx_proc_is_made(const struct lx_proc_path *p);
long lx_proc_make(const struct lx_proc_path *p, uint64_t open_flags);

/* Of a thread that makes a real call: 'S' when it waits in it. */
char lx_proc_state_in_call(const struct lx_thread *t);

#endif
