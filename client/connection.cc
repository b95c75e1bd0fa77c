#include "client/connection.h"

#include <arpa/inet.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <netinet/in.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/error.h"

namespace wan::client {
namespace {

std::shared_ptr<grpc::Channel> MakeChannel(const ConnectionOptions& options) {
  grpc::ChannelArguments arguments;
  // A page of a thousand jobs may be longer than gRPC's default limit of 4 MiB.
  arguments.SetMaxReceiveMessageSize(64 << 20);
  // A hundred field violations are longer than gRPC's default limit of 8 KiB for trailers.
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, 64 << 10);
  // gRPC also limits one attempt to connect to this time.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
                   static_cast<int>(absl::ToInt64Milliseconds(options.connect_timeout)));
  // Without this setting a new channel would share the failed connection and back-off of the
  // previous one.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Keepalive detects a peer that has vanished without closing the connection. More than one ping
  // in five minutes would count as abuse for gRPC servers and proxies with default settings.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 310 * 1000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20 * 1000);
  return grpc::CreateCustomChannel(
      options.server,
      options.tls ? grpc::SslCredentials({options.tls_ca, options.tls_key, options.tls_certificate})
                  : grpc::InsecureChannelCredentials(),
      arguments);
}

// Returns true only if the server is surely this machine. Does not resolve names other than
// localhost.
bool IsLoopback(const std::string& server) {
  std::string host = server.substr(0, server.rfind(':'));
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  if (host == "localhost") return true;
  in_addr v4 = {};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    return ntohl(v4.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
  }
  in6_addr v6 = {};
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

// Whether a proxy has reset the stream, for example after a timeout; gRPC reports that as INTERNAL.
// The server's own errors always have details, so an error without details is not from the server.
bool IsCutStream(const grpc::Status& outcome) {
  return outcome.error_code() == grpc::StatusCode::INTERNAL && outcome.error_details().empty() &&
         outcome.error_message().find("RST_STREAM") != std::string::npos;
}

}  // namespace

absl::Status CheckToken(const ConnectionOptions& options) {
  if (options.token.empty()) return absl::OkStatus();
  const bool printable = std::all_of(options.token.begin(), options.token.end(),
                                     [](unsigned char c) { return absl::ascii_isgraph(c); });
  if (!printable) {
    return absl::InvalidArgumentError(
        "the token has characters that are not allowed; must be one word of printable ASCII");
  }
  if (options.tls || options.allow_plaintext_token || IsLoopback(options.server)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the token would be sent to ", options.server,
      " without encryption, where others may read it; use TLS, or allow it explicitly"));
}

Connection::Connection(ConnectionOptions options)
    : options_(std::move(options)), channel_(MakeChannel(options_)) {}

Connection::~Connection() = default;

// A channel that has failed to connect refuses calls until its back-off has passed. If a program
// makes only synchronous calls, gRPC polls its socket only every 5 s, so it may not notice for a
// long time that the server is back. A new channel connects at its first call, and resolves the
// server's name again.
std::shared_ptr<grpc::Channel> Connection::ChannelForCall() const {
  const absl::MutexLock lock(&mutex_);
  if (channel_->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_TRANSIENT_FAILURE) {
    channel_ = MakeChannel(options_);
  }
  return channel_;
}

absl::Status Connection::Call(
    const std::stop_token& stop,
    const std::function<grpc::Status(const std::shared_ptr<grpc::Channel>&, grpc::ClientContext&)>&
        call) const {
  if (absl::Status token = CheckToken(options_); !token.ok()) return token;
  const std::shared_ptr<grpc::Channel> channel = ChannelForCall();
  grpc::ClientContext context;
  if (!options_.token.empty()) context.AddMetadata("authorization", "Bearer " + options_.token);
  for (const auto& [key, value] : {std::pair("traceparent", options_.traceparent),
                                   std::pair("tracestate", options_.tracestate)}) {
    if (!value.empty() && std::all_of(value.begin(), value.end(), absl::ascii_isprint)) {
      context.AddMetadata(key, value);
    }
  }
  if (options_.deadline != absl::InfiniteFuture()) {
    context.set_deadline(absl::ToChronoTime(options_.deadline));
  }
  grpc::Status outcome;
  {
    std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
    outcome = call(channel, context);
  }
  if (outcome.ok()) return absl::OkStatus();
  if (outcome.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED &&
      channel->GetState(/*try_to_connect=*/false) != GRPC_CHANNEL_READY) {
    return absl::UnavailableError("no connection within the given time");
  }
  if (IsCutStream(outcome)) {
    return absl::UnavailableError("something on the way has cut the stream: " +
                                  outcome.error_message());
  }
  return FromTrailer(outcome.error_code(), outcome.error_message(), outcome.error_details());
}

}  // namespace wan::client
