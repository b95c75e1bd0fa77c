#include "server/http/http_connection.h"

#include <poll.h>
#include <sys/socket.h>

namespace wan::server::internal {

bool IsNotHttp(error_code error) {
  return error.category() == http::make_error_code(http::error::bad_method).category() &&
         error != http::error::partial_message;
}

sockaddr_storage PeerOf(tcp::socket& socket) {
  sockaddr_storage peer = {};
  socklen_t size = sizeof(peer);
  ::getpeername(socket.native_handle(), reinterpret_cast<sockaddr*>(&peer), &size);
  return peer;
}

bool IsClosed(int socket) {
  pollfd state{socket, POLLRDHUP, 0};
  return poll(&state, 1, 0) > 0 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace wan::server::internal
