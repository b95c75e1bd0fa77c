// gRPC's server credentials from files that may change.
#pragma once

#include <memory>

namespace grpc {
class ServerCredentials;
}

namespace wan::server {

class TlsFiles;

// Each new connection uses what the files hold then; connections that are open go on. TLS 1.2 and
// 1.3; where the files have authorities of clients, every connection must have a certificate of
// one. For one server. The files must outlive the credentials and the server.
std::shared_ptr<grpc::ServerCredentials> MakeTlsCredentials(TlsFiles& files);

}  // namespace wan::server
