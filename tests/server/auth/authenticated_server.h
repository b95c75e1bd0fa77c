// A whole server that knows its callers by tokens, and calls of it with a token.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <string>

#include "absl/synchronization/notification.h"
#include "server/auth/token_file.h"
#include "tests/server/rpc/server_fixture.h"

namespace wan::server {

class AuthenticatedServerTest : public ServerTest {
 protected:
  ServerConfig AuthenticatedConfig() const {
    ServerConfig config = DefaultConfig();
    config.auth_tokens = TokenFile();
    return config;
  }

  std::string TokenFile() const { return folder_ + "/tokens"; }

  // Makes the principal known, also to a server that runs.
  std::string NewTokenOf(const std::string& principal, Role role) {
    std::string token = NewToken();
    EXPECT_TRUE(
        AddCredential(
            TokenFile(),
            {{principal, role}, absl::UnixEpoch(), Credential::Kind::kToken, HashOfToken(token)})
            .ok());
    return token;
  }

  // A context that sends the token; empty: none.
  static std::unique_ptr<grpc::ClientContext> As(const std::string& token) {
    auto context = std::make_unique<grpc::ClientContext>();
    if (!token.empty()) context->AddMetadata("authorization", "Bearer " + token);
    return context;
  }

  // Calls "/SERVICE/METHOD" with bytes that are no message: whoever is let in gets an error of
  // another kind, and nothing happens.
  grpc::Status CallWithRubbish(const std::shared_ptr<grpc::Channel>& channel,
                               const std::string& path, const std::string& token) {
    const grpc::Slice slice("\xff\xff\xff\xff");
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer response;
    grpc::GenericStub stub(channel);
    const auto context = As(token);
    absl::Notification done;
    grpc::Status status;
    stub.UnaryCall(context.get(), path, {}, &request, &response, [&](grpc::Status ended) {
      status = std::move(ended);
      done.Notify();
    });
    done.WaitForNotification();
    return status;
  }
};

}  // namespace wan::server
