// SPDX-License-Identifier: Apache-2.0
/* Timeouts: a user pointer to a relative or absolute timespec -> deadline on CLOCK_MONOTONIC. */
#ifndef WF_LINUX_DEADLINE_H
#define WF_LINUX_DEADLINE_H

#include "base/base.h"

long lx_deadline_relative(const void *user_timespec, int64_t *out_deadline);
long lx_deadline_absolute(const void *user_timespec, int clock, int64_t *out_deadline);
int64_t lx_deadline_in(int64_t ns);

#endif
