// SPDX-License-Identifier: Apache-2.0
/*
 * What Java programs do with threads, one case per process: `java Threads CASE`, `--list`.
 * Compiled and run by ../java.py. A case throws when something is wrong; its last line is
 * `ok CASE`.
 */
import java.io.*;
import java.net.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import java.util.concurrent.locks.*;

public class Threads {
	interface Story {
		void run() throws Exception;
	}

	static final Map<String, Story> CASES = new LinkedHashMap<>();

	static void check(boolean isTrue) {
		if (!isTrue)
			throw new IllegalStateException("check failed");
	}

	interface Work {
		void run(int i) throws Exception;
	}

	static void inThreads(int nr, Work work) throws Exception {
		AtomicReference<Throwable> failed = new AtomicReference<>();
		List<Thread> threads = new ArrayList<>();
		for (int n = 0; n < nr; n++) {
			int i = n;
			threads.add(new Thread(() -> {
				try {
					work.run(i);
				} catch (Throwable t) {
					failed.set(t);
				}
			}));
		}
		for (Thread t : threads)
			t.start();
		for (Thread t : threads)
			t.join();
		if (failed.get() != null)
			throw new Exception(failed.get());
	}

	static int counter;

	static void fiftyThreadsCount() throws Exception {
		Object lock = new Object();
		counter = 0;
		inThreads(50, i -> {
			for (int n = 0; n < 10000; n++)
				synchronized (lock) {
					counter++;
				}
		});
		check(counter == 500000);
	}

	static void waitNotifyAndLocks() throws Exception {
		ReentrantLock lock = new ReentrantLock();
		Condition turned = lock.newCondition();
		int[] turn = {0};
		inThreads(20, i -> {
			for (int lap = 0; lap < 50; lap++) {
				lock.lock();
				while (turn[0] != lap * 20 + i)
					turned.await();
				turn[0]++;
				turned.signalAll();
				lock.unlock();
			}
		});
		check(turn[0] == 1000);
		CyclicBarrier barrier = new CyclicBarrier(30);
		inThreads(30, i -> {
			for (int lap = 0; lap < 20; lap++)
				barrier.await(30, TimeUnit.SECONDS);
		});
		Object monitor = new Object();
		long begun = System.nanoTime();
		synchronized (monitor) {
			monitor.wait(100);
		}
		check(System.nanoTime() - begun >= 99_000_000L);
	}

	static void poolsAndQueues() throws Exception {
		ExecutorService pool = Executors.newFixedThreadPool(50);
		List<Future<Integer>> answers = new ArrayList<>();
		for (int n = 0; n < 2000; n++) {
			int i = n;
			answers.add(pool.submit(() -> i * 2));
		}
		long sum = 0;
		for (Future<Integer> answer : answers)
			sum += answer.get(30, TimeUnit.SECONDS);
		check(sum == 2000L * 1999);
		pool.shutdown();
		check(pool.awaitTermination(30, TimeUnit.SECONDS));
		check(new ForkJoinPool(4).submit(() -> java.util.stream.LongStream.range(0, 1000000)
			.parallel().sum()).get() == 499999500000L);
		ScheduledExecutorService timer = Executors.newScheduledThreadPool(2);
		CountDownLatch ticks = new CountDownLatch(10);
		timer.scheduleAtFixedRate(ticks::countDown, 5, 5, TimeUnit.MILLISECONDS);
		check(ticks.await(30, TimeUnit.SECONDS));
		timer.shutdownNow();
	}

	static void socketsEcho() throws Exception {
		ServerSocket server = new ServerSocket(0, 128, InetAddress.getLoopbackAddress());
		Thread accepter = new Thread(() -> {
			try {
				for (;;) {
					Socket sock = server.accept();
					new Thread(() -> {
						try (sock) {
							sock.getInputStream().transferTo(sock.getOutputStream());
						} catch (IOException e) {
							throw new UncheckedIOException(e);
						}
					}).start();
				}
			} catch (IOException closed) {
				return;
			}
		});
		accepter.start();
		inThreads(50, i -> {
			try (Socket sock = new Socket(server.getInetAddress(), server.getLocalPort())) {
				sock.setSoTimeout(30000);
				for (int n = 0; n < 20; n++) {
					byte[] text = ("client " + i + " line " + n).getBytes();
					sock.getOutputStream().write(text);
					check(Arrays.equals(sock.getInputStream().readNBytes(text.length), text));
				}
			}
		});
		server.close();
		accepter.join(30000);
		check(!accepter.isAlive());
	}

	static void interruptsAndSleeps() throws Exception {
		Thread sleeper = new Thread(() -> {
			try {
				Thread.sleep(60000);
			} catch (InterruptedException e) {
				counter = -1;
			}
		});
		sleeper.start();
		Thread.sleep(50);
		sleeper.interrupt();
		sleeper.join(30000);
		check(counter == -1);
		inThreads(50, i -> {
			long begun = System.nanoTime();
			Thread.sleep(20 + i);
			check(System.nanoTime() - begun >= (19 + i) * 1_000_000L);
		});
		Thread parked = new Thread(LockSupport::park);
		parked.start();
		LockSupport.unpark(parked);
		parked.join(30000);
		check(!parked.isAlive());
	}

	static int depth(int n) {
		return 1 + depth(n + 1);
	}

	/* The JVM turns SIGSEGV into these: null checks, stack bangs, safepoint polls. */
	static void faultsBecomeExceptions() throws Exception {
		inThreads(10, i -> {
			for (int n = 0; n < 2000; n++) {
				try {
					String none = n >= 0 ? null : "";
					check(none.length() < 0);
				} catch (NullPointerException expected) {
					continue;
				}
				check(false);
			}
			try {
				depth(0);
				check(false);
			} catch (StackOverflowError expected) {
				check(true);
			}
		});
	}

	static void garbageCollection() throws Exception {
		inThreads(8, i -> {
			List<byte[]> kept = new ArrayList<>();
			for (int n = 0; n < 2000; n++) {
				kept.add(new byte[10000]);
				if (kept.size() > 50)
					kept.clear();
				if (n % 1000 == 0)
					System.gc();
			}
		});
	}

	static void processes() throws Exception {
		inThreads(5, i -> {
			Process child = new ProcessBuilder("sh", "-c", "cat; exit " + i).start();
			child.getOutputStream().write(("text " + i).getBytes());
			child.getOutputStream().close();
			check(new String(child.getInputStream().readAllBytes()).equals("text " + i));
			check(child.waitFor() == i);
		});
	}

	public static void main(String[] args) throws Exception {
		CASES.put("fifty_threads_count", Threads::fiftyThreadsCount);
		CASES.put("wait_notify_and_locks", Threads::waitNotifyAndLocks);
		CASES.put("pools_and_queues", Threads::poolsAndQueues);
		CASES.put("sockets_echo", Threads::socketsEcho);
		CASES.put("interrupts_and_sleeps", Threads::interruptsAndSleeps);
		CASES.put("faults_become_exceptions", Threads::faultsBecomeExceptions);
		CASES.put("garbage_collection", Threads::garbageCollection);
		CASES.put("processes", Threads::processes);
		if (args[0].equals("--list")) {
			System.out.println(String.join("\n", CASES.keySet()));
			return;
		}
		CASES.get(args[0]).run();
		System.out.println("ok " + args[0]);
	}
}
