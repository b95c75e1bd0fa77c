// Describes the other end of a connection.
#pragma once

#include <openssl/ssl.h>
#include <sys/socket.h>

#include <string>

namespace wan::server {

// The address as gRPC writes it: "ipv4:192.0.2.7:41234", "ipv6:%5B2001:db8::7%5D:41234". An IPv4
// address inside of IPv6 is written as IPv4; "unknown" for other families.
std::string PeerText(const sockaddr_storage& peer);

// The key by which callers are counted: an IPv4 address, or the /64 network of an IPv6 address,
// because one caller may own the whole /64. Bytes, not text.
std::string NetworkOf(const sockaddr_storage& peer);

// The subject of the client certificate in the form of RFC 2253; empty without a certificate.
std::string SubjectOf(SSL* connection);

}  // namespace wan::server
