// SPDX-License-Identifier: Apache-2.0
/* One descriptor; see reader.h. */
#include "reader.h"
#include "model.h"

bool reader_has_data;
int64_t reader_read_at;

static const struct wf_io_driver *machine_driver;
static struct wf_thread *reader;

static bool poll_reader(int64_t timeout_ns)
{
	bool is_woken = machine_driver->poll(timeout_ns);

	if (reader_has_data && reader) {
		struct wf_thread *t = reader;

		reader = NULL;
		(void)wf_unpark(t, WF_WAKE_EVENT);
	}
	return is_woken;
}

static bool somebody_waits(void)
{
	return true;
}

struct wf_io_driver reader_driver;

void reader_reset(uint32_t nr_workers)
{
	machine_reset(nr_workers);
	machine_driver = wf_rt.io;
	reader_driver = *machine_driver;
	reader_driver.poll = poll_reader;
	reader_driver.has_waiters = somebody_waits;
	reader_driver.may_sleep_beside = true;
	wf_rt.io = &reader_driver;
	reader = NULL;
	reader_has_data = false;
	reader_read_at = 0;
	for (uint32_t i = 0; i < nr_workers; i++)
		(void)machine_kthread(&wf_rt.workers[i]);
}

void reader_reads(void *arg)
{
	wf_park_begin(0, WF_WAIT_FD, 0);
	if (reader_has_data) {
		(void)wf_park_abort();
	} else {
		reader = wf_self();
		(void)wf_park(WF_NEVER);
	}
	reader_read_at = model_now();
}

void reader_data_comes(void)
{
	reader_has_data = true;
	machine_event();
}
