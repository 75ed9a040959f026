# SPDX-License-Identifier: Apache-2.0
"""What weft-gdb.py, beside this folder, loads into gdb."""
