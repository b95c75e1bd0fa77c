#include "server/auth/model_roots.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "engine/api/file_problem.h"
#include "engine/api/model_source.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;

constexpr char kOutside[] =
    "is not below a folder that the server loads models from (model_roots); name a path below one "
    "of them";
// Maximum number of entries of a model's folder, far more than any checkpoint has; larger folders
// are refused.
constexpr int kMostEntries = 10'000;
// The ends of the names of an index and of its shards, which the engine reads from one folder.
constexpr std::string_view kIndex = ".safetensors.index.json";
constexpr std::string_view kShard = ".safetensors";

// Returns the real path of a file, as the kernel knows it for the opened descriptor, so that nobody
// can replace the file between check and use. Returns an empty path if the file cannot be opened.
std::string RealPathOf(const std::string& path, struct stat* facts) {
  const int fd = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) return {};
  const absl::Cleanup closed = [fd] { close(fd); };
  std::error_code error;
  const fs::path real = fs::read_symlink(absl::StrCat("/proc/self/fd/", fd), error);
  if (error || fstat(fd, facts) != 0) return {};
  return real.string();
}

// Returns why the server cannot open a path below a root, without naming the path.
std::string ProblemOf(const std::string& path) {
  const absl::Status status = CheckPath(path, PathKind::kFile);
  // If the path can be opened now, the file was created after the first attempt, so report that
  // attempt's error.
  if (status.ok()) return "does not exist";
  const std::string text(status.message());
  const std::string prefix = path + ": ";
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

bool IsBelow(const std::string& path, const std::string& root) {
  if (root == "/") return path.starts_with('/');
  return path.size() > root.size() && path.starts_with(root) && path[root.size()] == '/';
}

// Removes "." and ".." and the slash at the end.
std::string Normal(const std::string& path) {
  std::string normal = fs::path(path).lexically_normal().string();
  if (normal.size() > 1 && normal.back() == '/') normal.pop_back();
  return normal;
}

// Calls `visit` with every untrusted path of the spec, the name of the field that holds the path,
// and the path's key in that field (empty if the field is only this path). The path that `visit`
// returns replaces the path in the spec.
void ForEachPath(ModelSpec& spec, const std::set<std::string>& trusted,
                 const std::function<std::string(const std::string& field, std::string_view key,
                                                 const std::string& path)>& visit) {
  if (!trusted.contains(spec.path)) {
    const auto change = [&](std::string_view key, const std::string& path) {
      return visit("path", key, path);
    };
    // A text with wrong names of parts is checked as if it were one path.
    spec.path = ParseModelSource(spec.path).ok() ? ChangePaths(spec.path, change)
                                                 : visit("path", "", spec.path);
  }
  for (size_t i = 0; i < spec.loras.size(); ++i) {
    if (spec.loras[i].found || trusted.contains(spec.loras[i].path)) continue;
    spec.loras[i].path = visit(absl::StrCat("loras[", i, "].path"), "", spec.loras[i].path);
  }
}

// Whether ParseModelSource reads the text as exactly this one path. Otherwise the text would name
// files that were not checked.
bool IsOnePath(const std::string& path) {
  const absl::StatusOr<ModelSource> source = ParseModelSource(path);
  return source.ok() && source->parts.empty() && source->base == path;
}

FieldViolation Violation(const std::string& field, std::string_view key, std::string_view problem) {
  return {field, absl::StrCat(std::string(key), key.empty() ? "" : ": ", std::string(problem))};
}

}  // namespace

ModelRoots::ModelRoots(std::vector<std::string> roots) : anywhere_(false) {
  for (const std::string& root : roots) {
    std::error_code error;
    const fs::path absolute = fs::absolute(root, error);
    if (error) continue;
    roots_.push_back(Normal(absolute.string()));
    struct stat facts = {};
    std::string real = RealPathOf(roots_.back(), &facts);
    if (!real.empty() && real != roots_.back()) roots_.push_back(std::move(real));
  }
}

bool ModelRoots::Contain(const std::string& path) const {
  return std::any_of(roots_.begin(), roots_.end(),
                     [&](const std::string& root) { return IsBelow(path, root); });
}

std::vector<FieldViolation> ModelRoots::Check(const ModelSpec& spec,
                                              const std::set<std::string>& trusted) const {
  std::vector<FieldViolation> violations;
  if (anywhere_) return violations;
  ModelSpec looked_at = spec;
  ForEachPath(looked_at, trusted,
              [&](const std::string& field, std::string_view key, const std::string& path) {
                if (!Contain(Normal(path))) violations.push_back(Violation(field, key, kOutside));
                return path;
              });
  return violations;
}

absl::StatusOr<ModelSpec> ModelRoots::Resolve(ModelSpec spec,
                                              const std::set<std::string>& trusted) const {
  if (anywhere_) return spec;
  std::vector<FieldViolation> violations;
  ForEachPath(spec, trusted,
              [&](const std::string& field, std::string_view key, const std::string& path) {
                std::string real;
                const std::optional<std::string> problem = ResolvePath(path, &real);
                if (problem.has_value()) violations.push_back(Violation(field, key, *problem));
                return real;
              });
  if (!violations.empty()) return InvalidFields(violations);
  return spec;
}

std::optional<std::string> ModelRoots::ResolvePath(const std::string& path,
                                                   std::string* real) const {
  if (!Contain(Normal(path))) return kOutside;
  struct stat facts = {};
  *real = RealPathOf(path, &facts);
  if (real->empty()) return ProblemOf(path);
  if (!Contain(*real)) return kOutside;
  if (!IsOnePath(*real)) {
    return "is a link to a path in which a comma and KEY= follow; such a path would name other "
           "files";
  }
  if (S_ISREG(facts.st_mode)) {
    if (!real->ends_with(kIndex)) return std::nullopt;
    // The engine opens only the shards in the folder of an index, so check only them.
    const std::string folder = fs::path(*real).parent_path().string();
    std::error_code error;
    const fs::directory_iterator entries(folder, error);
    if (error) return "cannot be read";
    return ProblemOfEntries(folder, entries,
                            [](std::string_view name) { return name.ends_with(kShard); });
  }
  if (!S_ISDIR(facts.st_mode)) return "must be a folder or a regular file";
  std::error_code error;
  // The iterator does not follow links to folders, so it cannot loop; ProblemOfEntries checks that
  // the targets of links are below a root.
  const fs::recursive_directory_iterator entries(*real, error);
  if (error) return "cannot be read";
  return ProblemOfEntries(*real, entries, [](std::string_view) { return true; });
}

template <typename Iterator>
std::optional<std::string> ModelRoots::ProblemOfEntries(
    const std::string& folder, Iterator entry, bool (*matters)(std::string_view name)) const {
  int entries = 0;
  std::error_code error;
  for (const Iterator end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().lexically_relative(folder).string();
    if (!matters(name)) continue;
    if (++entries > kMostEntries) {
      return absl::StrCat("is a folder with more than ", kMostEntries,
                          " entries, which no checkpoint has");
    }
    struct stat facts = {};
    const std::string target = RealPathOf(entry->path().string(), &facts);
    if (target.empty()) continue;  // ignore a dangling link, because the engine reports it
    if (!Contain(target)) {
      return absl::StrCat("has the link ", name, ", which leads out of the server's model_roots");
    }
    if (!S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode)) {
      return absl::StrCat("has ", name, ", which is neither a regular file nor a folder");
    }
  }
  if (error) return "cannot be read";
  return std::nullopt;
}

}  // namespace wan::server
