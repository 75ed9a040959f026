#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

static int sleeper(void *until)
{
	return weft_sleep_until(*(weft_time *)until); /* or read(), poll(), ... */
}

int main(int argc, char **argv)
{
	struct weft_thread_opts opts = { .size = sizeof(opts), .stack_bytes = 64 << 10 };
	weft_time until = weft_now() + (argc > 1 ? atoi(argv[1]) : 1) * WEFT_SEC;
	static weft_thread *threads[10000];
	int n = 0;

	opts.name = "sleeper";
	while (n < 10000 && weft_thread_spawn(sleeper, &until, &opts, &threads[n]) == 0)
		n++;
	printf("%d threads\n", n);
	fflush(stdout);
	for (int i = 0; i < n; i++)
		weft_thread_join(threads[i], NULL, WEFT_NEVER);
	return n < 10000;
}
