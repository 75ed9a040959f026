# SPDX-License-Identifier: Apache-2.0
#
# Ruby programs with threads, one case per process: `ruby_cases.rb CASE`, `--list`.
# Run by ../ruby.py. A case raises when something is wrong; its last line on stdout is `ok CASE`.

require "etc"
require "monitor"
require "open3"
require "socket"
require "tempfile"
require "timeout"

CASES = {}

def story(name, &body)
  CASES[name.to_s] = body
end

def check(is_true, text = "check failed")
  raise text unless is_true
end

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

def in_threads(nr)
  threads = Array.new(nr) do |i|
    Thread.new { Thread.current.report_on_exception = false; yield i }
  end
  threads.map(&:value)
end

story :threads_return_values do
  check in_threads(100) { |i| i * i } == (0...100).map { |i| i * i }
  failed = Thread.new { Thread.current.report_on_exception = false; raise ArgumentError, "mine" }
  begin
    failed.join
    check false
  rescue ArgumentError => err
    check err.message == "mine"
  end
end

story :queue_delivers_everything_once do
  jobs, results = SizedQueue.new(5), Queue.new
  consumers = Array.new(10) { Thread.new { while (n = jobs.pop) do results << n end } }
  in_threads(10) { |i| 100.times { |n| jobs << i * 100 + n } }
  jobs.close
  consumers.each(&:join)
  check Array.new(results.size) { results.pop }.sort == (0...1000).to_a
end

story :mutex_protects_a_counter do
  mutex, total = Mutex.new, 0
  in_threads(20) do
    500.times do
      mutex.synchronize { n = total; Thread.pass if n % 50 == 0; total = n + 1 }
    end
  end
  check total == 10_000
end

story :monitor_is_reentrant do
  monitor, total = Monitor.new, 0
  in_threads(10) { 200.times { monitor.synchronize { monitor.synchronize { total += 1 } } } }
  check total == 2000
end

story :condition_variable_wakes_and_times_out do
  mutex, cond, ready, seen = Mutex.new, ConditionVariable.new, false, 0
  waiters = Array.new(50) do
    Thread.new { mutex.synchronize { cond.wait(mutex) until ready; seen += 1 } }
  end
  begun = now
  mutex.synchronize { cond.wait(mutex, 0.1) }
  check now - begun >= 0.099
  mutex.synchronize { ready = true; cond.broadcast }
  waiters.each(&:join)
  check seen == 50
end

story :timeout_interrupts do
  [-> { sleep }, -> { Queue.new.pop }, -> { IO.pipe[0].read(1) }, -> { loop {} },
   -> { m = Mutex.new; Thread.new { m.lock; sleep }; sleep 0.05; m.lock }].each do |wait|
    begun = now
    begin
      Timeout.timeout(0.2) { wait.call }
      check false, "not interrupted"
    rescue Timeout::Error
      check now - begun < 20
    end
  end
  check Timeout.timeout(10) { 7 } == 7
end

story :timeouts_in_many_threads do
  results = in_threads(30) do
    Timeout.timeout(0.1) { sleep 60 }
  rescue Timeout::Error
    :late
  end
  check results == [:late] * 30
end

story :thread_kill_raise_and_wakeup do
  stopped = Thread.new { begin; sleep; ensure; Thread.current[:cleaned] = true; end }
  Thread.pass until stopped.stop?
  stopped.kill
  check stopped.join(20) && stopped[:cleaned]
  raised = Thread.new { begin; sleep; rescue IOError => e; e.message; end }
  Thread.pass until raised.stop?
  raised.raise(IOError, "wake")
  check raised.value == "wake"
  woken = Thread.new { Thread.stop; :up }
  Thread.pass until woken.stop?
  woken.wakeup
  check woken.value == :up
end

story :ring_of_503_threads do
  nr, laps = 503, 20
  queues = Array.new(nr) { Queue.new }
  threads = Array.new(nr) do |i|
    Thread.new do
      laps.times { token = queues[i].pop; queues[(i + 1) % nr] << token + 1 }
    end
  end
  queues[0] << 0
  threads.each(&:join)
  check queues[0].pop == nr * laps
end

story :tcp_echo_with_100_clients do
  server = TCPServer.new("127.0.0.1", 0)
  server.listen(256)
  port = server.addr[1]
  accepter = Thread.new do
    while (sock = server.accept)
      Thread.new(sock) { |s| while (line = s.gets) do s.write(line) end; s.close }
    end
  rescue IOError
    :closed
  end
  in_threads(100) do |i|
    sock = TCPSocket.new("127.0.0.1", port)
    20.times do |n|
      sock.write("#{i} #{n}\n")
      check sock.gets == "#{i} #{n}\n"
    end
    sock.close
  end
  server.close
  check accepter.value == :closed
end

story :backticks_in_20_threads do
  check in_threads(20) { |i| Array.new(3) { |n| %x(echo #{i} #{n}; exit #{i}) } } ==
        (0...20).map { |i| (0...3).map { |n| "#{i} #{n}\n" } }
  statuses = in_threads(20) { |i| %x(exit #{i}); $?.exitstatus }
  check statuses == (0...20).to_a
end

story :system_and_spawn do
  check system("exit 0") && system("exit 3") == false && $?.exitstatus == 3
  pids = Array.new(10) { |i| spawn("exit #{i}") }
  check pids.map { |pid| Process.wait2(pid)[1].exitstatus } == (0...10).to_a
end

story :fork_with_threads do
  10.times do |i|
    idle = Array.new(3) { Thread.new { sleep } }
    pid = fork do
      check Thread.list.size == 1
      exit!(Thread.new { i }.value)
    end
    check Process.wait2(pid)[1].exitstatus == i
    idle.each(&:kill).each(&:join)
  end
end

story :fork_in_threads do
  statuses = in_threads(10) { |i| Process.wait2(fork { exit!(i) })[1].exitstatus }
  check statuses == (0...10).to_a
end

story :trap_and_kill do
  got = Queue.new
  trap("USR1") { got << :usr1 }
  trap("TERM") { got << :term }
  Process.kill("USR1", Process.pid)
  check Timeout.timeout(20) { got.pop } == :usr1
  Thread.new { Process.kill("TERM", Process.pid) }.join
  check Timeout.timeout(20) { got.pop } == :term
  r, w = IO.pipe
  child = fork { trap("INT") { exit!(7) }; w.write("x"); sleep }
  check r.read(1) == "x"
  Process.kill("INT", child)
  check Process.wait2(child)[1].exitstatus == 7
end

story :default_action_of_signals do
  %w[TERM HUP KILL].each do |name|
    r, w = IO.pipe
    child = fork { trap(name, "DEFAULT") unless name == "KILL"; w.write("x"); sleep }
    check r.read(1) == "x"
    Process.kill(name, child)
    status = Process.wait2(child)[1]
    check status.signaled? && status.termsig == Signal.list[name]
  end
end

story :interrupt_reaches_the_main_thread do
  begin
    Thread.new { sleep 0.2; Process.kill("INT", Process.pid) }
    sleep 60
    check false
  rescue Interrupt
    true
  end
end

story :popen_both_ways do
  outputs = in_threads(10) do |i|
    IO.popen(["cat"], "r+") { |io| io.write("text #{i}"); io.close_write; io.read }
  end
  check outputs == (0...10).map { |i| "text #{i}" }
  out, err, status = Open3.capture3("cat; echo bad >&2; exit 4", stdin_data: "in")
  check [out, err, status.exitstatus] == ["in", "bad\n", 4]
  big = "x" * 1_000_000
  back = IO.popen(["cat"], "r+") { |io| Thread.new { io.write(big); io.close_write }; io.read }
  check back == big
end

story :pipes_and_select do
  in_threads(20) do |i|
    r, w = IO.pipe
    check IO.select([r], nil, nil, 0.05).nil?
    writer = Thread.new { sleep 0.05; w.write("#{i}"); w.close }
    check IO.select([r], nil, nil, 30) == [[r], [], []]
    check r.read == i.to_s
    writer.join
  end
end

story :sleep_is_accurate do
  late = in_threads(50) do |i|
    want = 0.02 + 0.002 * i
    begun = now
    sleep want
    check now - begun >= want
    now - begun - want
  end
  check late.sort[25] < 0.5, late.inspect
end

story :computing_thread_lets_others_run do
  stop = false
  computing = Array.new(2) { Thread.new { n = 0; n += 1 until stop } }
  10.times { sleep 0.005 }
  stop = true
  check computing.all? { |t| t.join(20) }
end

story :thread_locals_and_fibers do
  in_threads(30) do |i|
    Thread.current.thread_variable_set(:me, i)
    fiber = Fiber.new { |x| loop { x = Fiber.yield(x + i) } }
    20.times { |n| Thread.pass; check fiber.resume(n) == n + i }
    check Thread.current.thread_variable_get(:me) == i
  end
end

story :name_lookups_in_threads do
  in_threads(20) { check Addrinfo.getaddrinfo("localhost", 80, nil, :STREAM).size >= 1 }
end

story :files_and_locks_in_threads do
  Tempfile.create("weft") do |file|
    in_threads(10) do |i|
      10.times do |n|
        File.open(file.path, "a") { |f| f.flock(File::LOCK_EX); f.puts("#{i} #{n}"); f.fsync }
      end
    end
    expected = (0...10).flat_map { |i| (0...10).map { |n| "#{i} #{n}\n" } }
    check File.readlines(file.path).sort == expected.sort
  end
end

story :garbage_collection_with_threads do
  in_threads(10) { 20.times { Array.new(2000) { |n| "string #{n}" }; GC.start if rand < 0.1 } }
end

story :thousand_short_threads do
  total = 0
  10.times { total += in_threads(100) { 1 }.sum }
  check total == 1000
end

if ARGV[0] == "--list"
  puts CASES.keys
else
  CASES.fetch(ARGV[0]).call
  puts "ok #{ARGV[0]}"
end
