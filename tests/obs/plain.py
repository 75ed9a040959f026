# SPDX-License-Identifier: Apache-2.0
"""The environment of what obstest.py and watching.py start: without variables of weft, but for the library that is tested."""
import os


def environment(**changes):
    env = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_") and k != "WEFT"}
    env["LC_ALL"] = "C"
    if "WEFT_LIBRARY" in os.environ:
        env["WEFT_LIBRARY"] = os.environ["WEFT_LIBRARY"]
    env.update(changes)
    return env
