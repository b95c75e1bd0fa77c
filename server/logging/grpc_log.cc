#include <grpc/support/log.h>

#include <atomic>

#include "server/logging/logger.h"

namespace wan::server {
namespace {

// gRPC calls a plain function.
std::atomic<Logger*> grpc_logger{nullptr};

LogLevel LevelOf(gpr_log_severity severity) {
  switch (severity) {
    case GPR_LOG_SEVERITY_DEBUG:
      return LogLevel::kDebug;
    case GPR_LOG_SEVERITY_INFO:
      return LogLevel::kInfo;
    case GPR_LOG_SEVERITY_ERROR:
      return LogLevel::kError;
  }
  return LogLevel::kError;
}

}  // namespace

void RouteGrpcLogs(Logger& logger) {
  grpc_logger = &logger;
  gpr_set_log_function([](gpr_log_func_args* args) {
    grpc_logger.load()->Log(LevelOf(args->severity), args->message,
                            {{"source", "grpc"}, {"file", args->file}, {"line", args->line}});
  });
}

}  // namespace wan::server
