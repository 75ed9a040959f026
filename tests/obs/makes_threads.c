// SPDX-License-Identifier: Apache-2.0
/* Makes threads, joins them and ends: something to record. */
#include <pthread.h>

static void *nothing(void *arg)
{
	return arg;
}

int main(void)
{
	for (int i = 0; i < 10; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, nothing, NULL) || pthread_join(t, NULL))
			return 1;
	}
	return 0;
}
