// Keeps freed memory from staying with the process.
#pragma once

namespace wan::server {

// Makes the C library map every block of 4 MiB or more by itself, and return it to the system when
// it is freed. Call it first in main, before any thread is started.
//
// By default glibc takes blocks of up to 32 MiB from its heap once it has freed one of that size.
// Tensors of a CPU then leave holes between them: a video of 576x576 and 121 frames needed 700 MiB
// where 470 MiB suffice, 400 MiB stayed with the process, and a job that its plan had admitted was
// killed by the limit of its control group. Changes nothing if the operator has set
// MALLOC_MMAP_THRESHOLD_ or GLIBC_TUNABLES.
void ReturnLargeBlocks();

}  // namespace wan::server
