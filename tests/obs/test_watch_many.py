#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft watch` over a thousand deaths: nothing is left of them but the folders that are kept."""
import sys

from watching import WatchTest, main


class ManyTest(WatchTest):
    def test_thousand_deaths_leave_nothing(self):
        self.check_crashes(1000, "kill")

    def test_crashes_that_are_dumped_leave_nothing(self):
        self.check_crashes(50, "fault")


sys.exit(main(ManyTest))
