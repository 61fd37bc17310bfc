/* SPDX-License-Identifier: Apache-2.0 */
/* Thread-local data of the fast kind: a library that is loaded late takes it from a small reserve of the process. */
static __thread char block[TLS_BYTES] __attribute__((tls_model("initial-exec")));

char *plugin_thread_local(void) { return block; }
