// Describes the other end of a connection.
#pragma once

#include <openssl/ssl.h>
#include <sys/socket.h>

#include <string>

namespace wan::server {

// Returns the address as gRPC writes it: "ipv4:192.0.2.7:41234", "ipv6:%5B2001:db8::7%5D:41234". An
// IPv4-mapped IPv6 address is written as IPv4; an address of another family as "unknown".
std::string PeerText(const sockaddr_storage& peer);

// Returns the key under which a caller's connections are counted: the IPv4 address, or the /64
// network of an IPv6 address, because one caller may own the whole /64. The key is bytes, not text.
std::string NetworkOf(const sockaddr_storage& peer);

// Returns the subject of the client certificate in the form of RFC 2253; empty without a
// certificate.
std::string SubjectOf(SSL* connection);

}  // namespace wan::server
