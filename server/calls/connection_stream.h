// Makes the stream of an accepted connection, in plain text or over TLS.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "server/calls/tls_contexts.h"

namespace wan::server {

using PlainStream = boost::beast::tcp_stream;
using TlsStream = boost::beast::ssl_stream<boost::beast::tcp_stream>;

template <typename Stream>
inline constexpr bool kIsTls = std::is_same_v<Stream, TlsStream>;

// Makes the stream over an accepted socket. `context` is null for PlainStream; otherwise it must
// outlive the stream.
template <typename Stream>
Stream MakeStream(boost::asio::ip::tcp::socket socket, boost::asio::ssl::context* context) {
  if constexpr (kIsTls<Stream>) {
    return Stream(boost::beast::tcp_stream(std::move(socket)), *context);
  } else {
    return Stream(std::move(socket));
  }
}

// Chooses the stream of a new connection and calls `begin(std::type_identity<Stream>(), context)`,
// with the context that the connection keeps (null for PlainStream). `tls` is empty if the server
// speaks plain text. If OpenSSL refuses the server's certificate, nothing is called, and the owner
// of the socket closes it. Call ChooseStream on the thread that uses `tls`.
template <typename Begin>
void ChooseStream(std::optional<TlsContexts>& tls, Begin begin) {
  if (!tls.has_value()) {
    begin(std::type_identity<PlainStream>(), std::shared_ptr<boost::asio::ssl::context>());
  } else if (std::shared_ptr<boost::asio::ssl::context> context = tls->Current()) {
    begin(std::type_identity<TlsStream>(), std::move(context));
  }
}

}  // namespace wan::server
