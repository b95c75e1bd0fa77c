// Serves one connection of HttpServer. Only http_server.cc includes this header.
#pragma once

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/calls/caller_address.h"
#include "server/calls/connection_stream.h"
#include "server/calls/request_target.h"
#include "server/http/arriving_body.h"
#include "server/http/http_server.h"

namespace wan::server {

namespace internal {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

// Most bytes of a body, or of data that is dropped, that are read at a time.
inline constexpr size_t kReadBytes = size_t{64} << 10;

inline constexpr size_t kShownBytes = 60;

// Whether the error means that the peer sent something that is not HTTP.
bool IsNotHttp(error_code error);

sockaddr_storage PeerOf(tcp::socket& socket);

// Whether the peer has closed the connection, or will send no more.
bool IsClosed(int socket);

// Serves one connection. Runs on the server's thread; only the HttpReply and HttpCallerGone that
// the connection hands out run on other threads.
template <typename Stream>
class HttpConnection final : public std::enable_shared_from_this<HttpConnection<Stream>> {
 public:
  struct Shared {
    const HttpCallbacks& callbacks;
    const HttpLimits& limits;
  };

  // `tls` is null if the connection is plain text.
  HttpConnection(const Shared& shared, std::shared_ptr<asio::ssl::context> tls, tcp::socket socket)
      : shared_(shared),
        tls_(std::move(tls)),
        stream_(MakeStream<Stream>(std::move(socket), tls_.get())),
        buffer_(std::max(2 * shared.limits.header_bytes, kReadBytes)) {}

  void Begin() {
    peer_ = PeerText(PeerOf(Socket().socket()));
    Socket().expires_after(shared_.limits.header_time);
    if constexpr (kIsTls<Stream>) {
      stream_.async_handshake(asio::ssl::stream_base::server,
                              [self = this->shared_from_this()](error_code error) {
                                if (error) return;
                                self->subject_ = SubjectOf(self->stream_.native_handle());
                                self->ReadHeader();
                              });
    } else {
      ReadHeader();
    }
  }

 private:
  using Request = http::request<ArrivingBody>;
  using Parser = http::request_parser<ArrivingBody>;

  beast::tcp_stream& Socket() { return beast::get_lowest_layer(stream_); }

  void ReadHeader() {
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(shared_.limits.header_bytes));
    // HttpEntry::arrived limits the size. boost::none would refuse every body: Boost 1.74 compares
    // the size with the missing limit.
    parser_->body_limit(std::numeric_limits<uint64_t>::max());
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = this->shared_from_this()](error_code error, size_t) {
                              error ? self->RefuseHeader(error) : self->Enter();
                            });
  }

  // Answers a header that could not be read, unless the peer closed the connection or sent nothing.
  void RefuseHeader(error_code error) {
    if (error == http::error::end_of_stream) {
      End();
      return;
    }
    head_only_ = false;  // reset it, because it still has the value of the previous request
    if (!IsNotHttp(error)) return;
    const bool large = error == http::error::header_limit || error == http::error::buffer_overflow;
    large ? Refuse(431, absl::StrCat("the request's header has more than ",
                                     shared_.limits.header_bytes, " bytes, the most it may"))
          : Refuse(400, absl::StrCat("the request's header is not HTTP/1.1: ", error.message()));
  }

  // Answers and then closes the connection, because nobody knows where the next request starts.
  void Refuse(int status, std::string_view message) {
    keep_alive_ = false;
    Send(shared_.callbacks.refuse(status, message));
  }

  void Enter() {
    const Request& request = parser_->get();
    version_ = request.version();
    keep_alive_ = request.keep_alive();
    head_only_ = request.method() == http::verb::head;
    const std::optional<RequestTarget> target =
        ParseRequestTarget({request.target().data(), request.target().size()});
    if (const std::string problem = ProblemOf(request, target.has_value()); !problem.empty()) {
      Refuse(400, problem);
      return;
    }
    const HttpHead head = HeadOf(request, *target);
    HttpEntry entry = shared_.callbacks.enter(head);
    if (entry.refusal.has_value()) {
      // If there is a body, it is not read and precedes the next request, so close the connection.
      if (head.body_bytes != uint64_t{0}) keep_alive_ = false;
      Send(*std::move(entry.refusal));
      return;
    }
    arrived_ = std::move(entry.arrived);
    work_ = std::move(entry.work);
    Socket().expires_after(shared_.limits.body_time);
    if (absl::EqualsIgnoreCase(std::string(head.First("expect")), "100-continue")) {
      SayContinue();
    } else {
      ReadBody();
    }
  }

  // Returns what is wrong with the request if its end or its host is ambiguous; otherwise an empty
  // text.
  std::string ProblemOf(const Request& request, bool target_is_read) const {
    if (!target_is_read) return "the URL of the request line must have a host, and no user";
    if (request.count(http::field::host) > 1) return "the request has more than one Host; send one";
    const beast::string_view coding = request[http::field::transfer_encoding];
    const bool coded = request.count(http::field::transfer_encoding) > 0;
    if (coded && (!beast::iequals(coding, "chunked") || !parser_->chunked() ||
                  request.count(http::field::transfer_encoding) > 1)) {
      return absl::StrCat("Transfer-Encoding is '",
                          absl::CHexEscape({coding.data(), std::min(coding.size(), kShownBytes)}),
                          "'; must be chunked, or be left out");
    }
    return {};
  }

  HttpHead HeadOf(const Request& request, const RequestTarget& target) const {
    HttpHead head;
    head.method = std::string(request.method_string());
    head.path = target.path;
    head.query = target.query;
    for (const auto& field : request) {
      if (field.name() == http::field::host && !target.host.empty()) continue;
      head.fields.emplace_back(absl::AsciiStrToLower(std::string(field.name_string())),
                               std::string(field.value()));
    }
    if (!target.host.empty()) head.fields.emplace_back("host", target.host);
    head.peer = peer_;
    head.certificate_subject = subject_;
    if (parser_->chunked()) {
      head.body_bytes.reset();
    } else if (const auto bytes = parser_->content_length(); bytes.has_value()) {
      head.body_bytes = *bytes;
    }
    return head;
  }

  // Sends 100 Continue, for which the caller waits before it sends the body.
  void SayContinue() {
    static constexpr char kContinue[] = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(stream_, asio::buffer(kContinue, sizeof(kContinue) - 1),
                      [self = this->shared_from_this()](error_code error, size_t) {
                        if (!error) self->ReadBody();
                      });
  }

  // Reads the body of the request. The parser is not eager: an eager one returns only after
  // complete chunks, so their bytes would not be counted in time.
  void ReadBody() {
    if (parser_->is_done()) {
      TakeBody();
      return;
    }
    http::async_read_some(stream_, buffer_, *parser_,
                          [self = this->shared_from_this()](error_code error, size_t) {
                            error ? self->RefuseBody(error) : self->TakeBody();
                          });
  }

  void RefuseBody(error_code error) {
    if (!IsNotHttp(error)) return;
    GiveUp();
    Refuse(400, absl::StrCat("the request's body is not in chunks: ", error.message()));
  }

  void TakeBody() {
    const uint64_t bytes = parser_->get().body().size();
    const bool whole = parser_->is_done();
    std::optional<HttpAnswer> refusal;
    if (arrived_) refusal = arrived_(bytes, whole);
    if (refusal.has_value()) {
      GiveUp();
      if (!whole) keep_alive_ = false;
      Send(*std::move(refusal));
    } else if (whole) {
      Work();
    } else {
      // Only large bodies get a large buffer.
      if (bytes >= kReadBytes) buffer_.reserve(kReadBytes);
      ReadBody();
    }
  }

  // Releases the request; the server does not read the rest of it.
  void GiveUp() {
    parser_.reset();
    arrived_ = nullptr;
    work_ = nullptr;
  }

  void Work() {
    Socket().expires_never();
    std::string body = std::move(parser_->get().body());
    parser_.reset();
    buffer_.shrink_to_fit();
    arrived_ = nullptr;
    // The callbacks keep the connection alive, and so the socket, until the answer.
    std::exchange(work_, nullptr)(
        std::move(body),
        [self = this->shared_from_this()](HttpAnswer answer) {
          auto held = std::make_shared<HttpAnswer>(std::move(answer));
          asio::post(self->Socket().get_executor(), [self, held] { self->Send(std::move(*held)); });
        },
        [self = this->shared_from_this()] {
          return IsClosed(self->Socket().socket().native_handle());
        });
  }

  void Send(HttpAnswer answer) {
    answer_ = std::move(answer);
    header_.emplace(static_cast<http::status>(answer_.status), version_);
    for (const auto& [name, value] : answer_.fields) header_->insert(name, value);
    // The server drops the bytes that the caller sends during an unsized answer, so no other
    // request can follow on the connection.
    if (answer_.unsized) keep_alive_ = false;
    header_->keep_alive(keep_alive_);
    chunked_ = answer_.unsized && version_ >= 11;
    if (answer_.unsized) {
      header_->chunked(chunked_);
    } else if (answer_.status != 304 && answer_.status != 204) {
      // Set no Content-Length for 304 and 204: in a 304 the field would be the length of the
      // content that is not sent.
      header_->content_length(answer_.stream_bytes > 0 ? answer_.stream_bytes
                                                       : answer_.body.size());
    }
    serializer_.emplace(*header_);
    Socket().expires_after(shared_.limits.write_time);
    http::async_write_header(stream_, *serializer_,
                             [self = this->shared_from_this()](error_code error, size_t) {
                               // Release the answer after an error: if it holds the connection, the
                               // connection would never be destroyed.
                               error ? self->Forget() : self->SendBody();
                             });
  }

  void SendBody() {
    if (head_only_) {
      Sent();
    } else if (answer_.next_piece) {
      if (answer_.unsized) {
        Socket().expires_never();
        WatchCaller();
      }
      NextPiece();
    } else {
      asio::async_write(stream_, asio::buffer(answer_.body),
                        [self = this->shared_from_this()](error_code error, size_t) {
                          if (!error) self->Sent();
                        });
    }
  }

  void NextPiece() {
    if (answer_.stream_bytes == 0 && !answer_.unsized) {
      Sent();
      return;
    }
    Socket().expires_never();
    answer_.next_piece([self = this->shared_from_this()](absl::StatusOr<std::string> taken) {
      auto piece = std::make_shared<absl::StatusOr<std::string>>(std::move(taken));
      asio::post(self->Socket().get_executor(), [self, piece] { self->SendPiece(*piece); });
    });
  }

  void SendPiece(absl::StatusOr<std::string>& piece) {
    const bool last = answer_.unsized && piece.ok() && piece->empty();
    if (!last && (!piece.ok() || piece->empty() ||
                  (!answer_.unsized && piece->size() > answer_.stream_bytes))) {
      // The caller notices the error, because the answer has fewer bytes than announced or lacks
      // the last chunk.
      Forget();
      Socket().close();
      return;
    }
    if (!answer_.unsized) answer_.stream_bytes -= piece->size();
    answer_.body = *std::move(piece);
    if (chunked_) {
      answer_.body = absl::StrCat(absl::Hex(answer_.body.size()), "\r\n", answer_.body, "\r\n");
    }
    Socket().expires_after(shared_.limits.write_time);
    writing_ = true;
    asio::async_write(stream_, asio::buffer(answer_.body),
                      [self = this->shared_from_this(), last](error_code error, size_t) {
                        self->writing_ = false;
                        if (error) {
                          self->Forget();
                        } else {
                          last ? self->EndUnsized() : self->NextPiece();
                        }
                      });
  }

  // Reads and drops the bytes that the caller sends during an unsized answer, to notice when the
  // caller has gone.
  void WatchCaller() {
    dropped_.resize(kReadBytes);
    stream_.async_read_some(asio::buffer(dropped_),
                            [self = this->shared_from_this()](error_code error, size_t bytes) {
                              if (self->ended_) return self->End();
                              self->dropped_bytes_ += bytes;
                              if (!error && self->dropped_bytes_ < kReadBytes)
                                return self->WatchCaller();
                              // A write in progress still uses the answer; closing the socket makes
                              // the write fail, and its handler then releases the answer.
                              if (!self->writing_) self->Forget();
                              self->Socket().close();
                            });
  }

  // Ends the pending read of WatchCaller, which then ends the connection.
  void EndUnsized() {
    Forget();
    ended_ = true;
    Socket().cancel();
  }

  // Releases the answer, with its file and its lease.
  void Forget() {
    serializer_.reset();
    header_.reset();
    answer_ = HttpAnswer();
  }

  void Sent() {
    Forget();
    if (keep_alive_) {
      Socket().expires_after(shared_.limits.header_time);
      ReadHeader();
    } else {
      End();
    }
  }

  // Signals the end of the answer, then reads and drops the peer's bytes for a while: closing at
  // once would reset the connection, and the answer might be lost.
  void End() {
    Socket().expires_after(shared_.limits.drop_time);
    if constexpr (kIsTls<Stream>) {
      stream_.async_shutdown([self = this->shared_from_this()](error_code) {});
    } else {
      error_code ignored;
      Socket().socket().shutdown(tcp::socket::shutdown_send, ignored);
      dropped_.resize(kReadBytes);
      Drop();
    }
  }

  void Drop() {
    stream_.async_read_some(asio::buffer(dropped_),
                            [self = this->shared_from_this()](error_code error, size_t) {
                              if (!error) self->Drop();
                            });
  }

  const Shared shared_;
  const std::shared_ptr<asio::ssl::context> tls_;
  Stream stream_;
  beast::flat_buffer buffer_;
  std::string peer_;
  std::string subject_;
  std::optional<Parser> parser_;
  unsigned version_ = 11;
  bool keep_alive_ = false;
  bool head_only_ = false;
  bool chunked_ = false;  // whether the answer is sent in chunks
  bool writing_ = false;  // whether a piece of an answer is being written
  bool ended_ = false;    // whether an unsized answer was sent completely
  size_t dropped_bytes_ = 0;
  HttpEntry::Arrived arrived_;
  std::function<void(std::string, HttpReply, HttpCallerGone)> work_;
  HttpAnswer answer_;
  std::optional<http::response<http::empty_body>> header_;
  std::optional<http::response_serializer<http::empty_body>> serializer_;
  std::string dropped_;
};

}  // namespace internal

}  // namespace wan::server
