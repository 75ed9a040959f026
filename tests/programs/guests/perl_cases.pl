# SPDX-License-Identifier: Apache-2.0
#
# Perl programs with threads and processes: `perl_cases.pl CASE`, `--list`.
# Run by ../perl.py. A case dies when something is wrong; its last line on stdout is `ok CASE`.

use strict;
use warnings;
use threads;
use threads::shared;
use IO::Select;
use IO::Socket::INET;
use Thread::Queue;
use Time::HiRes qw(sleep time alarm);

$| = 1;

sub check
{
	my ($is_true, $text) = @_;
	die($text // "check failed") unless $is_true;
}

my %cases = (
	threads_return_values => sub {
		my @threads = map { my $n = $_; threads->create(sub { return $n * $n }) } 1 .. 20;
		my @values = map { $_->join } @threads;
		check("@values" eq join(" ", map { $_ * $_ } 1 .. 20));
	},
	shared_counter_and_condition => sub {
		my $total : shared = 0;
		my $go : shared = 0;
		my @threads = map {
			threads->create(sub {
				{ lock($go); cond_wait($go) until $go; }
				for (1 .. 200) { lock($total); $total++; }
			})
		} 1 .. 10;
		{ lock($go); $go = 1; cond_broadcast($go); }
		$_->join for @threads;
		check($total == 2000);
		lock($go);
		check(!cond_timedwait($go, time() + 0.1));
	},
	queue_delivers_everything_once => sub {
		my ($jobs, $results) = (Thread::Queue->new, Thread::Queue->new);
		my @threads = map {
			threads->create(sub {
				while (defined(my $n = $jobs->dequeue)) { $results->enqueue($n * 2); }
			})
		} 1 .. 5;
		$jobs->enqueue($_) for 1 .. 500;
		$jobs->end;
		$_->join for @threads;
		my $sum = 0;
		while (defined(my $n = $results->dequeue_nb)) { $sum += $n; }
		check($sum == 500 * 501);
	},
	fork_and_wait => sub {
		my %status;
		for my $i (1 .. 20) {
			my $pid = fork;
			exit $i if $pid == 0;
			$status{$pid} = $i;
		}
		for my $pid (keys %status) {
			check(waitpid($pid, 0) == $pid && $? >> 8 == $status{$pid});
		}
	},
	fork_with_threads => sub {
		my $done : shared = 0;
		my $thread = threads->create(sub { lock($done); cond_wait($done) until $done; });
		for my $i (1 .. 5) {
			my $pid = fork;
			if ($pid == 0) { require POSIX; POSIX::_exit($i); }
			check(waitpid($pid, 0) == $pid && $? >> 8 == $i);
		}
		{ lock($done); $done = 1; cond_signal($done); }
		$thread->join;
	},
	pipes_and_backticks => sub {
		check(`seq 1000 | tail -1` eq "1000\n");
		check(system("sh", "-c", "exit 3") >> 8 == 3);
		open(my $pipe, "-|", "cat", $0) or die;
		my $nr = () = <$pipe>;
		close($pipe);
		check($? == 0 && $nr > 50);
	},
	signals_and_alarm => sub {
		my $got = 0;
		local $SIG{USR1} = sub { $got++ };
		for (1 .. 10) { kill("USR1", $$); }
		check($got >= 1);
		eval { local $SIG{ALRM} = sub { die "late\n" }; alarm(0.1); sleep(60); };
		check($@ eq "late\n");
		eval { local $SIG{ALRM} = sub { die "late\n" }; alarm(0.1); 1 while 1; };
		check($@ eq "late\n");
	},
	sockets_between_processes => sub {
		my $server = IO::Socket::INET->new(LocalAddr => "127.0.0.1", Listen => 64) or die;
		my $port = $server->sockport;
		my @children;
		for my $i (1 .. 10) {
			my $pid = fork;
			if ($pid == 0) {
				my $sock = IO::Socket::INET->new("127.0.0.1:$port") or exit 1;
				print $sock "hello $i\n";
				exit(<$sock> eq "HELLO $i\n" ? 0 : 2);
			}
			push @children, $pid;
		}
		for (1 .. 10) {
			my $sock = $server->accept or die;
			print $sock uc(<$sock>);
		}
		for my $pid (@children) { waitpid($pid, 0); check($? == 0); }
	},
	select_and_sleep => sub {
		pipe(my $r, my $w) or die;
		my $begun = time;
		check(!IO::Select->new($r)->can_read(0.1));
		check(time - $begun >= 0.099);
		syswrite($w, "x");
		check(IO::Select->new($r)->can_read(30));
	},
);

if ($ARGV[0] eq "--list") {
	print "$_\n" for sort keys %cases;
} else {
	$cases{ $ARGV[0] }->();
	print "ok $ARGV[0]\n";
}
