# SPDX-License-Identifier: Apache-2.0
"""`weft run --seed`: schedules are random. Usage: test_seed.py WEFT WAKE_ORDER"""

import subprocess
import sys

WEFT, WAKE_ORDER = sys.argv[1:3]
SEEDS = 30

print("1..1", flush=True)
orders = set()
for seed in range(SEEDS):
    done = subprocess.run([WEFT, "run", "--workers", "1", "--seed", str(seed), "--", WAKE_ORDER],
                          stdout=subprocess.PIPE, check=True)
    orders.add(done.stdout)
# Without a seed one worker serves them as they come: always the same, but for an interruption now and then.
is_ok = len(orders) > SEEDS // 3 and all(sorted(order) == sorted(b"abcdefgh\n") for order in orders)
print("%s 1 - threads come in another order with each seed (%d in %d runs)" %
      ("ok" if is_ok else "not ok", len(orders), SEEDS))
