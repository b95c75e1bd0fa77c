// Makes the process return freed memory to the system.
#pragma once

namespace wan::server {

// Makes the C library map every block of 4 MiB or more separately, so that freeing the block
// returns it to the system, and serve all threads from four heaps. Call KeepHeapsSmall first in
// main, before any thread is started.
//
// By default glibc takes blocks of up to 32 MiB from its heap once it has freed one of that size.
// Tensors on a CPU then leave holes between such blocks: a video of 576x576 and 121 frames needed
// 700 MiB where 470 MiB suffice, 400 MiB stayed with the process, and a job that its plan had
// admitted was killed by the limit of its control group.
//
// By default glibc also makes up to eight heaps for each CPU, and keeps in each heap what its
// threads have freed: 17,000 calls at a time took 466 to 602 MiB where four heaps take 95 to 252
// MiB, with the same times (64 CPUs, three of them for the server).
//
// Changes nothing if the operator has set GLIBC_TUNABLES, and leaves any value that the operator
// has set by MALLOC_MMAP_THRESHOLD_ or MALLOC_ARENA_MAX.
void KeepHeapsSmall();

}  // namespace wan::server
