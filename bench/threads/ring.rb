#!/usr/bin/env ruby
# SPDX-License-Identifier: Apache-2.0
# Thread-ring: ring.rb HOPS prints the number of the thread, of 503, that holds the token after so many hops.

RING = 503
hops = Integer(ARGV.fetch(0, 1000))
done = Queue.new
places = Array.new(RING) { Queue.new }

RING.times do |i|
  Thread.new do
    while (left = places[i].pop)
      if left.zero?
        done << (i + 1)
      else
        places[(i + 1) % RING] << (left - 1)
      end
    end
  end
end
places[0] << hops
puts done.pop
