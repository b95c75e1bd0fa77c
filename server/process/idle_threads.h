// Keeps idle OpenMP threads from using CPU time.
#pragma once

namespace wan::server {

// Makes the idle OpenMP threads of this process sleep after a few microseconds. By default idle
// OpenMP threads spin for milliseconds after each operator: on two cores, a second server made a
// job of 7 s take 45 s. Threads that sleep at once make a small video 20 % slower on free cores,
// because each of the video's thousands of operators then waits for a thread to wake;
// docs/operate/reliability.md has the figures. Call MakeIdleThreadsSleep first in main, before any
// thread is started, with the `argv` of main.
//
// The OpenMP library reads the environment when the program is loaded, before main. So this
// function sets GOMP_SPINCOUNT and executes the program again in the same process; on success the
// function does not return. The function returns and changes nothing if the operator has set
// OMP_WAIT_POLICY or GOMP_SPINCOUNT. If the program cannot be executed again, the function returns
// and the threads go on spinning.
void MakeIdleThreadsSleep(char** argv);

}  // namespace wan::server
