#include "client/connection.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/error.h"

namespace wan::client {
namespace {

std::shared_ptr<grpc::Channel> MakeChannel(const ConnectionOptions& options) {
  grpc::ChannelArguments arguments;
  // gRPC's own limit, 4 MiB, is less than a page of a thousand jobs may need.
  arguments.SetMaxReceiveMessageSize(64 << 20);
  // Many field violations are longer than gRPC's 8 KiB for trailers.
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, 64 << 10);
  // In gRPC this is also the time that an attempt to connect may take.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
                   static_cast<int>(absl::ToInt64Milliseconds(options.connect_timeout)));
  // The retries of this library have their own back-off; gRPC's would only make them fail unseen.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // Finds out about a peer that vanished without a word. More often than every five minutes is what
  // gRPC servers by default take for abuse.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 310 * 1000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20 * 1000);
  return grpc::CreateCustomChannel(options.server, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

Connection::Connection(ConnectionOptions options)
    : options_(std::move(options)), channel_(MakeChannel(options_)) {}

absl::Status Connection::Call(const std::stop_token& stop,
                              const std::function<grpc::Status(grpc::ClientContext&)>& call) const {
  grpc::ClientContext context;
  if (options_.deadline != absl::InfiniteFuture()) {
    context.set_deadline(absl::ToChronoTime(options_.deadline));
  }
  grpc::Status outcome;
  {
    std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
    outcome = call(context);
  }
  if (outcome.ok()) return absl::OkStatus();
  if (outcome.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED &&
      channel_->GetState(/*try_to_connect=*/false) != GRPC_CHANNEL_READY) {
    return absl::UnavailableError(absl::StrCat("no connection within the given time"));
  }
  return FromTrailer(outcome.error_code(), outcome.error_message(), outcome.error_details());
}

}  // namespace wan::client
