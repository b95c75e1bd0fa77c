#include "server/jobs/lora_folders.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;

constexpr char kEnding[] = ".safetensors";
constexpr char kPeftModel[] = "adapter_model.safetensors";
constexpr size_t kMaxNameLength = 63;

std::string NameFrom(std::string text) {
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (!absl::ascii_isalnum(byte) && c != '.' && c != '_' && c != '-') c = '_';
  }
  return text.substr(0, kMaxNameLength);
}

// A file's name without the word that names its expert.
struct ExpertFile {
  std::string name;
  ExpertRole expert = ExpertRole::kOnly;
  bool is_explicit = false;  // "@high"
  bool is_certain = false;   // "@high" or "high_noise"; "high" alone may have another meaning
};

bool IsSeparator(char c) { return c == '_' || c == '-' || c == '.' || c == ' ' || c == '@'; }

// Takes "high" or "low" out of a name: "x_high_noise" becomes "x". Returns nullopt if the name has
// no such word.
std::optional<ExpertFile> WithoutExpert(const std::string& stem) {
  struct Word {
    std::string_view text;
    ExpertRole expert;
    bool is_certain;
  };
  constexpr std::array<Word, 10> kWords = {{{"@high", ExpertRole::kHighNoise, true},
                                            {"@low", ExpertRole::kLowNoise, true},
                                            {"high_noise", ExpertRole::kHighNoise, true},
                                            {"high-noise", ExpertRole::kHighNoise, true},
                                            {"highnoise", ExpertRole::kHighNoise, true},
                                            {"low_noise", ExpertRole::kLowNoise, true},
                                            {"low-noise", ExpertRole::kLowNoise, true},
                                            {"lownoise", ExpertRole::kLowNoise, true},
                                            {"high", ExpertRole::kHighNoise, false},
                                            {"low", ExpertRole::kLowNoise, false}}};
  const std::string small = absl::AsciiStrToLower(stem);
  for (const Word& word : kWords) {
    const size_t begin = small.find(word.text);
    if (begin == std::string::npos) continue;
    const size_t end = begin + word.text.size();
    const bool starts = begin == 0 || IsSeparator(small[begin]) || IsSeparator(small[begin - 1]);
    const bool ends = end == small.size() || IsSeparator(small[end]);
    if (!starts || !ends) continue;
    std::string before = stem.substr(0, begin);
    std::string after = stem.substr(end);
    if (!before.empty() && IsSeparator(before.back())) before.pop_back();
    if (before.empty() && !after.empty()) after.erase(0, 1);
    return ExpertFile{NameFrom(before + after), word.expert, word.text.starts_with('@'),
                      word.is_certain};
  }
  return std::nullopt;
}

// The paths of a folder's safetensors files (the key is the file name without the ending) and of
// the folder's subfolders.
struct Listing {
  std::map<std::string, std::string> files;
  std::map<std::string, std::string> folders;
};

absl::StatusOr<Listing> List(const std::string& folder) {
  Listing listing;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    const fs::path& path = entry->path();
    if (entry->is_directory(ignored)) {
      listing.folders[path.filename().string()] = path.string();
    } else if (path.extension() == kEnding) {
      listing.files[path.stem().string()] = path.string();
    }
  }
  if (!error) return listing;
  return absl::FailedPreconditionError(absl::StrCat("lora_dirs is ", folder,
                                                    ", which cannot be read: ", error.message(),
                                                    "; must be a folder that the server may read"));
}

// Adds a folder's files. If `parent` is not empty, it is the name of the folder that has the files.
// Then the files are a LoRA with the folder's name only if there is a single file or a pair.
void AddFiles(const std::map<std::string, std::string>& files, const std::string& parent,
              std::vector<LoraSource>& sources) {
  std::map<std::string, std::set<ExpertRole>> experts;
  for (const auto& [stem, path] : files) {
    if (const auto file = WithoutExpert(stem)) experts[file->name].insert(file->expert);
  }
  for (const auto& [stem, path] : files) {
    const std::optional<ExpertFile> file = WithoutExpert(stem);
    const bool is_pair = file.has_value() && experts[file->name].size() == 2;
    if (!parent.empty() && !is_pair && files.size() > 1) continue;
    LoraSource source;
    source.name = parent.empty() ? NameFrom(stem) : parent;
    if (is_pair || (file.has_value() && file->is_certain)) source.expert = file->expert;
    const bool is_explicit = file.has_value() && file->is_explicit;
    if (parent.empty() && (is_pair || is_explicit)) source.name = file->name;
    source.path = path;
    if (!source.name.empty()) sources.push_back(std::move(source));
  }
}

absl::Status AddFolder(const std::string& folder, std::vector<LoraSource>& sources) {
  const absl::StatusOr<Listing> listing = List(folder);
  if (!listing.ok()) return listing.status();
  AddFiles(listing->files, "", sources);
  for (const auto& [name, path] : listing->folders) {
    std::error_code ignored;
    if (fs::exists(fs::path(path) / kPeftModel, ignored)) {
      const std::optional<ExpertFile> file = WithoutExpert(name);
      LoraSource source = {NameFrom(name), std::nullopt, path};
      if (file.has_value() && file->is_explicit) source.name = file->name;
      if (file.has_value() && file->is_certain) source.expert = file->expert;
      sources.push_back(std::move(source));
      continue;
    }
    // A folder that cannot be read may have any content, so it is not a LoRA.
    if (const absl::StatusOr<Listing> inner = List(path); inner.ok()) {
      AddFiles(inner->files, NameFrom(name), sources);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<LoraSource>> LoraFolders::Find(std::string_view model) const {
  std::vector<LoraSource> sources;
  std::set<std::string> names;
  for (const Folder& folder : folders_) {
    if (!folder.model.empty() && folder.model != model) continue;
    std::vector<LoraSource> added;
    if (absl::Status status = AddFolder(folder.path, added); !status.ok()) return status;
    std::set<std::string> pairs;
    for (const LoraSource& source : added) {
      if (source.expert.has_value()) pairs.insert(source.name);
    }
    std::erase_if(added, [&](const LoraSource& source) {
      return names.contains(source.name) ||
             (!source.expert.has_value() && pairs.contains(source.name));
    });
    for (const LoraSource& source : added) names.insert(source.name);
    std::move(added.begin(), added.end(), std::back_inserter(sources));
  }
  const auto key = [](const LoraSource& source) { return std::pair(source.name, source.expert); };
  std::stable_sort(sources.begin(), sources.end(),
                   [&](const auto& a, const auto& b) { return key(a) < key(b); });
  sources.erase(std::unique(sources.begin(), sources.end(),
                            [&](const auto& a, const auto& b) { return key(a) == key(b); }),
                sources.end());
  for (LoraSource& source : sources) {
    source.found = true;
    for (const std::string& owner : {std::string(model), std::string()}) {
      const auto schedule = schedules_.find({owner, source.name});
      if (schedule != schedules_.end() && !source.schedule) source.schedule = schedule->second;
    }
  }
  return sources;
}

absl::StatusOr<std::vector<LoraFolders::UnusedSchedule>> LoraFolders::FindUnused(
    const std::vector<ModelSpec>& models) const {
  std::map<std::string, std::set<std::string>> names;  // names of LoRAs; the key is the model
  for (const ModelSpec& model : models) {
    const absl::StatusOr<std::vector<LoraSource>> found = Find(model.name);
    if (!found.ok()) return found.status();
    for (const auto* const loras : {&model.loras, &*found}) {
      for (const LoraSource& lora : *loras) {
        names[model.name].insert(lora.name);
        names[""].insert(lora.name);
      }
    }
  }
  std::vector<UnusedSchedule> unused;
  for (const auto& [key, schedule] : schedules_) {
    const std::set<std::string>& known = names[key.first];
    if (known.contains(key.second)) continue;
    unused.push_back({key.first, key.second, {known.begin(), known.end()}});
  }
  return unused;
}

}  // namespace wan::server
