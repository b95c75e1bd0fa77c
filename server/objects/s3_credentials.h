// Finds the credentials for an S3-compatible service where the usual tools look for them.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "server/objects/signer.h"

namespace wan::server {

// Returns the value of an environment variable; empty if it is unset.
using Environment = std::function<std::string(const char* name)>;
Environment ProcessEnvironment();

// Returns AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN if the first is set;
// otherwise those of the section AWS_PROFILE ("default") in the file AWS_SHARED_CREDENTIALS_FILE
// (~/.aws/credentials). Reads the file at each call, so that new credentials count from the next
// request on. Any thread may call it.
//
// Errors: FAILED_PRECONDITION, which names what is missing and no secret.
absl::StatusOr<S3Credentials> FindCredentials(const Environment& environment);

}  // namespace wan::server
