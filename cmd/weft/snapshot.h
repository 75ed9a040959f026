// SPDX-License-Identifier: Apache-2.0
/*
 * `weft doctor --snapshot FILE`: what --root reads, of this machine, as a tar file. Used by: doctor.c.
 */
#ifndef WF_SNAPSHOT_H
#define WF_SNAPSHOT_H

/* Returns doctor's exit code: 0, or 125 after having said why not. */
int wf_snapshot_write(const char *file);

#endif
