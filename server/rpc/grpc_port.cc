#include "server/rpc/grpc_port.h"

#include <grpcpp/impl/service_type.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <utility>

namespace wan::server {
namespace {

// This limit is larger than that for images (32 MiB), so that the server itself refuses an image
// that is a little too large, with a violation of `image`. gRPC's own limit would end the call
// without details.
constexpr int kMaxRequestBytes = 64 << 20;
// Maximum number of bytes that gRPC may hold for arriving requests and unsent answers. Above this
// number gRPC shrinks its flow-control windows and then ends calls.
constexpr size_t kGrpcBytes = size_t{512} << 20;
// Maximum number of open calls of one connection; the client delays further calls.
constexpr int kCallsPerConnection = 1'000;
// Maximum number of bytes of a call's metadata, counted as in HTTP/2: each entry's text plus 32.
constexpr int kMetadataBytes = 8 << 10;
// Keepalive: detects callers that vanished silently, and limits the pings that callers may send.
constexpr int kKeepaliveMillis = 20'000;
constexpr int kKeepaliveTimeoutMillis = 10'000;
constexpr int kShortestPingMillis = 5'000;
// A connection is closed if it has not begun to speak HTTP/2 in this time.
constexpr int kHandshakeMillis = 10'000;
// Time to answer the calls that are still open when the rest of the server has stopped.
constexpr std::chrono::seconds kLastCalls{2};
// Time after kLastCalls in which callers can read the errors that end their calls.
constexpr std::chrono::milliseconds kLastAnswers{500};

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcPort>> GrpcPort::Listen(std::string_view setting,
                                                           const HostPort& address,
                                                           const ConnectionLimits& limits,
                                                           RelayOptions relay) {
  ConnectionLimits own = limits;
  own.unacknowledged = std::chrono::milliseconds(kKeepaliveTimeoutMillis);
  absl::StatusOr<std::unique_ptr<ConnectionAcceptor>> taken =
      ConnectionAcceptor::Listen(address, own, setting);
  if (!taken.ok()) return taken.status();
  const int port = (*taken)->port();
  relay.connection.open_streams = kCallsPerConnection;
  return std::unique_ptr<GrpcPort>(new GrpcPort({address.host, port}, relay, *std::move(taken)));
}

GrpcPort::GrpcPort(HostPort address, const RelayOptions& relay,
                   std::unique_ptr<ConnectionAcceptor> acceptor)
    : address_(std::move(address)), relay_options_(relay), acceptor_(std::move(acceptor)) {}

GrpcPort::~GrpcPort() { Stop(); }

absl::Status GrpcPort::Start(const std::vector<grpc::Service*>& services, Callbacks callbacks) {
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  // Refuse compressed requests: gRPC decompresses them without a limit, and 60 MiB can become 60
  // GB.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  grpc::ResourceQuota quota("wanserve");
  builder.SetResourceQuota(quota.Resize(kGrpcBytes));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kCallsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMillis);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMillis);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMillis);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kShortestPingMillis);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  door_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      grpc::InsecureServerCredentials());
  for (grpc::Service* const service : services) builder.RegisterService(service);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::InternalError("gRPC's server could not be started");
  relay_ = std::make_unique<ConnectionRelay>(
      relay_options_,
      ConnectionRelay::Callbacks{
          [this](int socket) {
            grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
            connection.fd = socket;
            door_->HandleNewConnection(&connection);
          },
          std::move(callbacks.on_refused)});
  acceptor_->Start([this](int socket) { relay_->Add(socket); }, std::move(callbacks.accepting));
  return absl::OkStatus();
}

void GrpcPort::Stop() {
  // Stop the acceptor and the relay first: gRPC does not close sockets that it receives after its
  // shutdown.
  acceptor_->Stop();
  if (relay_ != nullptr) {
    relay_->StopHandingOver();
    relay_->CloseWithin(kLastCalls + kLastAnswers);
  }
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now() + kLastCalls);
  if (relay_ != nullptr) relay_->Stop();
}

ConnectionStats GrpcPort::Stats() {
  ConnectionStats stats = acceptor_->Stats();
  if (relay_ == nullptr) return stats;
  RelayStats relayed = relay_->Stats();
  stats.refused_descriptors += relayed.no_descriptor;
  stats.misused = std::move(relayed.misused);
  return stats;
}

}  // namespace wan::server
