// SPDX-License-Identifier: Apache-2.0
/* A descriptor with one reader, in the machine's poller. */
#ifndef WF_TESTS_READER_H
#define WF_TESTS_READER_H

#include "machine.h"

extern bool reader_has_data;
/* When it was read; 0: not yet. */
extern int64_t reader_read_at;
extern struct wf_io_driver reader_driver;

/* machine_reset(), and a kernel thread for each worker. */
void reader_reset(uint32_t nr_workers);
/* A thread: waits for the data, and reads them. */
void reader_reads(void *arg);
void reader_data_comes(void);

#endif
