// Reads the credentials with which wanctl calls a server.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/connection.h"
#include "client/wanctl/options.h"

namespace wan::client {

// Reads the TLS files and the token file that the flags name. Fails if a file cannot be read (the
// message names the flag), if a certificate has no key, or if the token would be sent in plain text
// to another machine. Tokens cannot be given on the command line, because every user of a machine
// can read the arguments of its processes.
absl::StatusOr<ConnectionOptions> ConnectionOptionsOf(const GlobalFlags& flags,
                                                      const std::string& default_token);

}  // namespace wan::client
