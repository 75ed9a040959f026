// SPDX-License-Identifier: Apache-2.0
/* The kernel's layouts of vectors and messages. */
#ifndef WF_LINUX_MSG_H
#define WF_LINUX_MSG_H

#include "base/base.h"

struct iovec_k {
	char *base;
	size_t len;
};

struct msghdr_k {
	void *name;
	int namelen, pad;
	struct iovec_k *iov;
	size_t iovlen;
	char *control;
	size_t controllen;
	unsigned flags;
};

struct mmsghdr_k {
	struct msghdr_k msg;
	unsigned len;
};

struct cmsghdr_k {
	size_t len; /* with this header */
	int level, type;
};

#endif
