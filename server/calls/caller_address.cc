#include "server/calls/caller_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/x509.h>

#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"

namespace wan::server {
namespace {

constexpr size_t kMappedAt = 12;  // offset of the IPv4 address inside an IPv4-mapped IPv6 address
constexpr size_t kNetworkBytes = 8;

const char* BytesOf(const sockaddr_in6& address) {
  return reinterpret_cast<const char*>(address.sin6_addr.s6_addr);
}

}  // namespace

std::string PeerText(const sockaddr_storage& peer) {
  char text[INET6_ADDRSTRLEN] = {};
  if (peer.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(peer);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    return absl::StrCat("ipv4:", text, ":", ntohs(v4.sin_port));
  }
  if (peer.ss_family != AF_INET6) return "unknown";
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(peer);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    inet_ntop(AF_INET, BytesOf(v6) + kMappedAt, text, sizeof(text));
    return absl::StrCat("ipv4:", text, ":", ntohs(v6.sin6_port));
  }
  inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  // gRPC percent-encodes the brackets, and the '%' before the interface name of a link-local
  // address.
  const std::string scope = v6.sin6_scope_id == 0 ? "" : absl::StrCat("%25", v6.sin6_scope_id);
  return absl::StrCat("ipv6:%5B", text, scope, "%5D:", ntohs(v6.sin6_port));
}

std::string NetworkOf(const sockaddr_storage& peer) {
  if (peer.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(peer);
    return std::string(reinterpret_cast<const char*>(&v4.sin_addr), sizeof(v4.sin_addr));
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(peer);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    return std::string(BytesOf(v6) + kMappedAt, sizeof(in_addr));
  }
  return std::string(BytesOf(v6), kNetworkBytes);
}

std::string SubjectOf(SSL* connection) {
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      SSL_get1_peer_certificate(connection), X509_free);
  if (certificate == nullptr) return {};
  const std::unique_ptr<BIO, decltype(&BIO_free)> text(BIO_new(BIO_s_mem()), BIO_free);
  X509_NAME_print_ex(text.get(), X509_get_subject_name(certificate.get()), 0, XN_FLAG_RFC2253);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(text.get(), &bytes);
  return std::string(bytes, static_cast<size_t>(size));
}

}  // namespace wan::server
