// What OpenMP's threads do while they have nothing to compute.
#pragma once

namespace wan::server {

// Makes the idle OpenMP threads of this process sleep. By default they spin for milliseconds after
// each operator, which takes the processors from every other process: two servers on two cores
// needed many times the time of one. Call it first in main, while there is one thread.
//
// The OpenMP library reads its settings from the environment when the program is loaded, before
// main. So this function sets OMP_WAIT_POLICY=PASSIVE and executes the program again, in the same
// process, and then does not return. It returns, and changes nothing, if the operator has set
// OMP_WAIT_POLICY or GOMP_SPINCOUNT, and if the program cannot be executed again. `argv` is main's.
void MakeIdleThreadsSleep(char** argv);

}  // namespace wan::server
