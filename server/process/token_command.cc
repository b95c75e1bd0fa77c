#include "server/process/token_command.h"

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "server/auth/token_file.h"

namespace wan::server {
namespace {

constexpr char kTimeFormat[] = "%Y-%m-%dT%H:%M:%SZ";
constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;

struct Arguments {
  std::string file;
  std::string principal;
  std::string role;
  std::string subject;
  std::string id;
};

absl::Status Create(const Arguments& arguments, const Clock& clock, std::ostream& out) {
  Credential credential;
  credential.principal = {arguments.principal, *ParseRole(arguments.role)};
  credential.created = clock.Now();
  if (!arguments.subject.empty()) {
    credential.kind = Credential::Kind::kSubject;
    credential.value = arguments.subject;
    return AddCredential(arguments.file, credential);
  }
  const std::string token = NewToken();
  credential.value = HashOfToken(token);
  absl::Status added = AddCredential(arguments.file, credential);
  // Show the token only when it is stored.
  if (added.ok()) out << token << '\n';
  return added;
}

absl::Status List(const Arguments& arguments, std::ostream& out) {
  const absl::StatusOr<std::vector<Credential>> credentials = ReadTokenFile(arguments.file);
  if (!credentials.ok()) return credentials.status();
  for (const Credential& credential : *credentials) {
    out << credential.principal.name << ' ' << NameOf(credential.principal.role) << ' '
        << absl::FormatTime(kTimeFormat, credential.created, absl::UTCTimeZone()) << ' '
        << IdOf(credential) << '\n';
  }
  return absl::OkStatus();
}

absl::Status Revoke(const Arguments& arguments) {
  return RevokeCredentials(arguments.file, arguments.principal, arguments.id).status();
}

}  // namespace

bool IsTokenCommand(int argc, const char* const* argv) {
  return argc > 1 && std::string_view(argv[1]) == "token";
}

int RunTokenCommand(int argc, const char* const* argv, const Clock& clock, std::ostream& out,
                    std::ostream& err) {
  CLI::App app("wanserve token: who may call the server", "wanserve token");
  app.set_help_flag("--help,-h", "print this and exit");
  app.require_subcommand(1);
  Arguments arguments;
  const auto add = [&](const char* name, const char* description) {
    CLI::App* const command = app.add_subcommand(name, description);
    command->add_option("--file", arguments.file, "file of principals, which --auth-tokens names")
        ->type_name("FILE")
        ->required();
    return command;
  };
  const auto add_principal = [&](CLI::App& command) {
    command.add_option("--principal", arguments.principal, "the principal's name")
        ->type_name("NAME")
        ->required();
  };
  CLI::App* const create =
      add("create", "make a token, print it alone on stdout, and keep only its hash");
  add_principal(*create);
  create->add_option("--role", arguments.role, "what the principal may do")
      ->type_name("viewer|user|admin")
      ->required();
  create
      ->add_option("--subject", arguments.subject,
                   "subject of a client certificate (RFC 2253) that stands for the principal; no "
                   "token is made then")
      ->type_name("SUBJECT");
  CLI::App* const list = add("list", "print NAME ROLE CREATED ID of every credential");
  CLI::App* const revoke =
      add("revoke", "remove a principal's credentials; running servers notice");
  add_principal(*revoke);
  revoke->add_option("--id", arguments.id, "only this credential, as list shows it")
      ->type_name("ID");

  try {
    app.parse(argc - 1, argv + 1);
  } catch (const CLI::CallForHelp&) {
    out << (app.get_subcommands().empty() ? app.help() : app.get_subcommands().front()->help());
    return kDone;
  } catch (const CLI::ParseError& error) {
    err << "wanserve token: " << error.what() << " (wanserve token --help lists the commands)\n";
    return kUsage;
  }
  if (*create && !ParseRole(arguments.role).has_value()) {
    err << "wanserve token: --role is '" << arguments.role << "', must be viewer, user or admin\n";
    return kUsage;
  }
  if (*create) {
    if (const absl::Status name = CheckPrincipalName(arguments.principal); !name.ok()) {
      err << "wanserve token: --principal is '" << arguments.principal
          << "': " << std::string(name.message()) << '\n';
      return kUsage;
    }
  }
  const absl::Status done = *create ? Create(arguments, clock, out)
                            : *list ? List(arguments, out)
                                    : Revoke(arguments);
  if (done.ok()) return kDone;
  err << "wanserve token: " << std::string(done.message()) << '\n';
  return kFailed;
}

}  // namespace wan::server
