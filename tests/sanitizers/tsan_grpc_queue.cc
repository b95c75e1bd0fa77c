// Tells ThreadSanitizer that what is done before an operation of gRPC begins is done before its end
// is handled, and what a call does before its server is gone.
//
// The distribution's gRPC is built without ThreadSanitizer, while half of its C++ layer is
// templates in our own code: there every callback would look like a race with the call that it
// belongs to. The definitions here take the place of the shared library's in executables that are
// built with -fsanitize=thread, as in tsan_absl_mutex.cc.
#include <dlfcn.h>
#include <grpc/grpc.h>
#include <sanitizer/tsan_interface.h>

#include <cstdio>
#include <cstdlib>

namespace {

template <typename Function>
Function* Library(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    std::fprintf(stderr, "tsan_grpc_queue: this gRPC has no %s\n", name);
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}

// Stands for all calls that ended.
char ended_calls;
// Stands for the connections of this process to itself. A client that waits (pluck; servers of ours
// never do) has seen what the server did before it answered.
char loopback;

}  // namespace

extern "C" {

grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops, size_t count, void* tag,
                                      void* reserved) {
  static auto* const start = Library<decltype(grpc_call_start_batch)>("grpc_call_start_batch");
  __tsan_release(tag);
  __tsan_release(&loopback);
  return start(call, ops, count, tag, reserved);
}

grpc_event grpc_completion_queue_next(grpc_completion_queue* queue, gpr_timespec deadline,
                                      void* reserved) {
  static auto* const next =
      Library<decltype(grpc_completion_queue_next)>("grpc_completion_queue_next");
  const grpc_event event = next(queue, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(event.tag);
  return event;
}

grpc_event grpc_completion_queue_pluck(grpc_completion_queue* queue, void* tag,
                                       gpr_timespec deadline, void* reserved) {
  static auto* const pluck =
      Library<decltype(grpc_completion_queue_pluck)>("grpc_completion_queue_pluck");
  const grpc_event event = pluck(queue, tag, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) {
    __tsan_acquire(event.tag);
    __tsan_acquire(&loopback);
  }
  return event;
}

// Of a server's call the last that happens: its reactor has heard OnDone.
void grpc_call_unref(grpc_call* call) {
  static auto* const unref = Library<decltype(grpc_call_unref)>("grpc_call_unref");
  __tsan_release(&ended_calls);
  unref(call);
}

// Comes after the server has waited for its calls.
void grpc_server_destroy(grpc_server* server) {
  static auto* const destroy = Library<decltype(grpc_server_destroy)>("grpc_server_destroy");
  destroy(server);
  __tsan_acquire(&ended_calls);
}

}  // extern "C"
