// SPDX-License-Identifier: Apache-2.0
/* The roles of kernel threads; see threads.h. */
#include "target/threads.h"

enum role {
	ROLE_DOOR,
	ROLE_POLLER,
	ROLE_RING,
	ROLE_BOUND,
	ROLE_CALL,
	ROLE_DIRECT,
	ROLE_WORKER,
	ROLE_IDLE,
	ROLE_SPARE,
	ROLE_LEAVING
};

const char *const wf_threads_roles[WF_NR_ROLES] = {
	[ROLE_DOOR] = "door",      [ROLE_POLLER] = "poller",
	[ROLE_RING] = "ring",      [ROLE_BOUND] = "bound",
	[ROLE_CALL] = "in a call", [ROLE_DIRECT] = "waits with its thread",
	[ROLE_WORKER] = "worker",  [ROLE_IDLE] = "idle worker",
	[ROLE_SPARE] = "spare",    [ROLE_LEAVING] = "leaving",
};

unsigned wf_threads_role(const struct wf_dump_kthread *k)
{
	if (k->is_door)
		return ROLE_DOOR;
	if (k->is_helper)
		return k->is_poller ? ROLE_POLLER : ROLE_RING;
	if (k->bound)
		return ROLE_BOUND;
	if (k->insys)
		return ROLE_CALL;
	if (k->is_direct)
		return ROLE_DIRECT;
	if (k->worker)
		return k->cur ? ROLE_WORKER : ROLE_IDLE;
	return k->is_asleep ? ROLE_SPARE : ROLE_LEAVING;
}
