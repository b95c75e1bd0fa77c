#include "client/wanctl/wanctl.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/reports/ceilings_file.h"
#include "client/wanctl/command_line.h"
#include "client/wanctl/commands.h"
#include "client/wanctl/defaults.h"

namespace wan::client {
namespace {

// Files of trusted authorities in Linux distributions.
constexpr const char* kSystemAuthorities[] = {"/etc/ssl/certs/ca-certificates.crt",
                                              "/etc/pki/tls/certs/ca-bundle.crt"};

absl::Status ReadFile(const char* flag, const std::string& path, std::string* text) {
  if (path.empty()) return absl::OkStatus();
  std::optional<std::string> read = reports::ReadFile(path);
  if (!read.has_value()) {
    return absl::NotFoundError(
        absl::StrCat(flag, " ", path, ": cannot be read: ", std::strerror(errno)));
  }
  *text = *std::move(read);
  return absl::OkStatus();
}

absl::Status ReadTls(const GlobalFlags& flags, ConnectionOptions& options) {
  options.tls = flags.tls || !flags.tls_ca.empty() || !flags.tls_cert.empty();
  if (flags.tls_cert.empty() != flags.tls_key.empty()) {
    return absl::InvalidArgumentError("--tls-cert and --tls-key belong together; give both");
  }
  absl::Status read = ReadFile("--tls-ca", flags.tls_ca, &options.tls_ca);
  read.Update(ReadFile("--tls-cert", flags.tls_cert, &options.tls_certificate));
  read.Update(ReadFile("--tls-key", flags.tls_key, &options.tls_key));
  if (!read.ok() || !options.tls || !options.tls_ca.empty()) return read;
  for (const char* const path : kSystemAuthorities) {
    if (ReadFile("--tls", path, &options.tls_ca).ok()) return absl::OkStatus();
  }
  return absl::OkStatus();  // gRPC then searches for authorities itself
}

// Reads the TLS files and the token file that the flags name. Errors: a file cannot be read (names
// the flag), a certificate has no key, or the token would be sent in plain text to another machine.
// Tokens cannot be given on the command line, because every user of a machine can read the
// arguments of its processes.
absl::StatusOr<ConnectionOptions> ConnectionOptionsOf(const GlobalFlags& flags,
                                                      const std::string& default_token) {
  ConnectionOptions options;
  options.server = flags.server;
  options.allow_plaintext_token = flags.allow_plaintext_token;
  if (absl::Status read = ReadTls(flags, options); !read.ok()) return read;
  options.token = default_token;
  if (absl::Status read = ReadFile("--token-file", flags.token_file, &options.token); !read.ok()) {
    return read;
  }
  absl::StripAsciiWhitespace(&options.token);
  if (!flags.token_file.empty() && options.token.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--token-file ", flags.token_file, ": is empty; must have one token"));
  }
  if (const absl::Status sent = CheckToken(options); absl::IsFailedPrecondition(sent)) {
    return absl::FailedPreconditionError(
        absl::StrCat(sent.message(), " (--tls, --tls-ca FILE, --allow-plaintext-token)"));
  } else if (!sent.ok()) {
    return sent;
  }
  return options;
}

// Runs the command, after it has replaced kLastJob by the job's real name.
template <typename C>
ExitCode RunWithJobs(Session& session, C command) {
  std::vector<std::string*> jobs;
  if constexpr (requires { command.job; }) jobs.push_back(&command.job);
  if constexpr (std::is_same_v<C, ReportCommand>) {
    for (std::string& job : command.jobs) jobs.push_back(&job);
  }
  if constexpr (std::is_same_v<C, CompareCommand>) {
    for (JobOrFile* const compared : {&command.a, &command.b}) {
      if (!compared->file) jobs.push_back(&compared->name);
    }
  }
  if constexpr (requires { command.flags.latents; }) {
    for (auto* const latents : {&command.flags.initial_latents, &command.flags.latents}) {
      if (latents->has_value() && !(*latents)->file) jobs.push_back(&(*latents)->name);
    }
  }
  for (std::string* const job : jobs) {
    if (const auto refused = FillInLastJob(session, *job)) return *refused;
  }
  return Run(session, command);
}

}  // namespace

int RunWanctl(const std::vector<std::string>& args, const Environment& environment) {
  const std::variant<Options, EarlyExit> parsed =
      ParseCommandLine(args, environment.default_server);
  int code = kExitDone;
  if (const auto* exit = std::get_if<EarlyExit>(&parsed)) {
    environment.console.out << exit->out;
    environment.console.err << exit->err;
    code = exit->code;
  } else {
    const Options& options = std::get<Options>(parsed);
    absl::StatusOr<ConnectionOptions> connection =
        ConnectionOptionsOf(options.global, environment.default_token);
    if (connection.ok()) {
      connection->traceparent = environment.traceparent;
      connection->tracestate = environment.tracestate;
      Session session(environment, options.global, *std::move(connection));
      code = std::visit([&](auto command) { return RunWithJobs(session, std::move(command)); },
                        options.command);
    } else {
      environment.console.err << "wanctl: " << std::string(connection.status().message()) << '\n';
      code = kExitUsage;
    }
  }
  // The command fails if its result cannot be written, for example because the disk is full.
  if (!environment.console.out.flush() && code == kExitDone) {
    environment.console.err << "wanctl: cannot write to stdout\n";
    code = kExitFailed;
  }
  return code;
}

}  // namespace wan::client
