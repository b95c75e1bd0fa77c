#include "server/process/first_start.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace wan::server {
namespace {

constexpr int kDefaultPort = 50051;

// Returns an address at which a caller on this machine reaches the port.
std::string LocalAddress(const HostPort& address) {
  const bool any = address.host == "0.0.0.0" || address.host == "::" || address.host == "127.0.0.1";
  return ToString(HostPort{any ? "localhost" : address.host, address.port});
}

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string DefaultDataDir() {
  // The specification of the variable allows only absolute paths.
  const std::string data = Variable("XDG_DATA_HOME");
  if (data.starts_with("/")) return absl::StrCat(data, "/wanserve");
  const std::string home = Variable("HOME");
  return home.starts_with("/") ? absl::StrCat(home, "/.local/share/wanserve") : "";
}

std::string NextSteps(const ListeningPorts& ports, std::string_view program) {
  const std::string folder(program.substr(0, program.rfind('/') + 1));
  const std::string grpc = LocalAddress(ports.grpc);
  const std::string flags =
      absl::StrCat(grpc == absl::StrCat("localhost:", kDefaultPort) ? "" : " --server " + grpc,
                   ports.tls ? " --tls-ca FILE" : "");
  std::string text = absl::StrCat("make a video: ", folder, "wanctl", flags,
                                  " generate \"A red circle moves to the right.\"\n");
  if (ports.http.has_value() && ports.http_page) {
    absl::StrAppend(&text, "or in a browser: http", ports.tls ? "s" : "", "://",
                    LocalAddress(*ports.http), "\n");
  }
  return text;
}

}  // namespace wan::server
