// The credentials with which wanctl calls a server.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/connection.h"
#include "client/wanctl/options.h"

namespace wan::client {

// Reads the files of TLS and the token that the flags name. An error says which flag's file cannot
// be read, that a certificate has no key, or that the token would be sent in plain text to another
// machine. Tokens come from a file or the environment only: every user of a machine can read the
// arguments of its processes.
absl::StatusOr<ConnectionOptions> ConnectionOptionsOf(const GlobalFlags& flags,
                                                      const std::string& default_token);

}  // namespace wan::client
