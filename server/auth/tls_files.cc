#include "server/auth/tls_files.h"

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace wan::server {
namespace {

constexpr off_t kMaxBytes = off_t{1} << 20;

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

// A file's path and the setting that names it.
struct Named {
  const char* setting;
  const std::string& path;

  std::string Says(std::string_view what) const {
    return absl::StrCat(setting, ": ", path, " ", std::string(what));
  }
};

absl::StatusOr<std::string> Read(const Named& file) {
  // With O_NONBLOCK, opening a named pipe returns at once; without it, the server would wait for a
  // writer.
  const int fd = open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const absl::Cleanup closed = [fd] {
    if (fd >= 0) close(fd);
  };
  struct stat facts = {};
  if (fd < 0 || fstat(fd, &facts) != 0) {
    const int error = errno;
    return absl::ErrnoToStatus(error,
                               file.Says(absl::StrCat("cannot be read: ", std::strerror(error))));
  }
  if (!S_ISREG(facts.st_mode) || facts.st_size > kMaxBytes) {
    return absl::InvalidArgumentError(file.Says("must be a regular file of at most 1 MiB"));
  }
  std::string text(static_cast<size_t>(facts.st_size), '\0');
  const ssize_t bytes = pread(fd, text.data(), text.size(), 0);
  if (bytes < 0) return absl::ErrnoToStatus(errno, file.Says("cannot be read"));
  text.resize(static_cast<size_t>(bytes));
  return text;
}

Bio BioOf(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Refuses keys with a passphrase, for which OpenSSL would by default ask at the terminal.
int NoPassphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*data*/) { return -1; }

absl::StatusOr<Certificate> ParseCertificate(const Named& file, const std::string& text) {
  Certificate certificate(PEM_read_bio_X509(BioOf(text).get(), nullptr, &NoPassphrase, nullptr));
  if (certificate == nullptr) {
    return absl::InvalidArgumentError(
        file.Says("has no certificate in PEM form (-----BEGIN CERTIFICATE-----)"));
  }
  return certificate;
}

absl::StatusOr<absl::Time> ToTime(const ASN1_TIME* time) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InvalidArgumentError("is no time");
  return absl::FromTM(parts, absl::UTCTimeZone());
}

// Returns the time at which the certificate expires, or an error if the certificate is not valid at
// `now`.
absl::StatusOr<absl::Time> CheckValidity(const Named& file, const X509& certificate,
                                         absl::Time now) {
  const auto begin = ToTime(X509_get0_notBefore(&certificate));
  const auto end = ToTime(X509_get0_notAfter(&certificate));
  if (!begin.ok() || !end.ok()) {
    return absl::InvalidArgumentError(file.Says("has a certificate with no valid times"));
  }
  const auto text = [](absl::Time time) { return absl::FormatTime(time, absl::UTCTimeZone()); };
  if (now > *end) {
    return absl::FailedPreconditionError(
        file.Says(absl::StrCat("expired at ", text(*end), "; put a new certificate there")));
  }
  if (now < *begin) {
    return absl::FailedPreconditionError(file.Says(absl::StrCat(
        "is not valid before ", text(*begin), "; check the clock, or put another one there")));
  }
  return *end;
}

}  // namespace

absl::StatusOr<TlsMaterial> ReadTlsFiles(const TlsPaths& paths, absl::Time now) {
  const Named certificate_file{"tls_cert", paths.certificate};
  const Named key_file{"tls_key", paths.key};
  const Named ca_file{"tls_client_ca", paths.client_ca};

  TlsMaterial material;
  auto text = Read(certificate_file);
  if (!text.ok()) return text.status();
  material.certificate = *std::move(text);
  const absl::StatusOr<Certificate> certificate =
      ParseCertificate(certificate_file, material.certificate);
  if (!certificate.ok()) return certificate.status();
  const auto expiry = CheckValidity(certificate_file, **certificate, now);
  if (!expiry.ok()) return expiry.status();
  material.expiry = *expiry;

  text = Read(key_file);
  if (!text.ok()) return text.status();
  material.key = *std::move(text);
  const Key key(
      PEM_read_bio_PrivateKey(BioOf(material.key).get(), nullptr, &NoPassphrase, nullptr));
  if (key == nullptr) {
    return absl::InvalidArgumentError(key_file.Says(
        "has no private key in PEM form without a passphrase (-----BEGIN PRIVATE KEY-----)"));
  }
  if (X509_check_private_key(certificate->get(), key.get()) != 1) {
    return absl::InvalidArgumentError(
        key_file.Says(absl::StrCat("is not the key of the certificate in ", paths.certificate)));
  }

  if (paths.client_ca.empty()) return material;
  text = Read(ca_file);
  if (!text.ok()) return text.status();
  material.client_ca = *std::move(text);
  const absl::StatusOr<Certificate> authority = ParseCertificate(ca_file, material.client_ca);
  if (!authority.ok()) return authority.status();
  return material;
}

absl::StatusOr<std::unique_ptr<TlsFiles>> TlsFiles::Open(
    TlsPaths paths, const Clock& clock, std::function<void(const absl::Status&)> on_problem,
    std::function<void(const TlsMaterial&)> on_change) {
  std::unique_ptr<TlsFiles> files(
      new TlsFiles(std::move(paths), clock, std::move(on_problem), std::move(on_change)));
  absl::MutexLock lock(&files->mutex_);
  // Take the stamps before reading the files, so that a change during the read is noticed next
  // time.
  files->stamps_ = files->StampsNow();
  absl::StatusOr<TlsMaterial> read = ReadTlsFiles(files->paths_, clock.Now());
  if (!read.ok()) return read.status();
  files->material_ = std::make_shared<const TlsMaterial>(*std::move(read));
  return files;
}

TlsFiles::TlsFiles(TlsPaths paths, const Clock& clock,
                   std::function<void(const absl::Status&)> on_problem,
                   std::function<void(const TlsMaterial&)> on_change)
    : paths_(std::move(paths)),
      clock_(clock),
      on_problem_(std::move(on_problem)),
      on_change_(std::move(on_change)) {}

TlsFiles::Stamps TlsFiles::StampsNow() const {
  return {FileStamp::Of(paths_.certificate), FileStamp::Of(paths_.key),
          FileStamp::Of(paths_.client_ca)};
}

std::shared_ptr<const TlsMaterial> TlsFiles::Current() {
  absl::Status problem;
  std::shared_ptr<const TlsMaterial> changed;
  std::shared_ptr<const TlsMaterial> current;
  {
    absl::MutexLock lock(&mutex_);
    if (!(StampsNow() == stamps_)) {
      problem = ReadAgain();
      if (problem.ok()) changed = material_;
    }
    current = material_;
  }
  if (changed != nullptr) on_change_(*changed);
  if (!problem.ok()) on_problem_(problem);
  return current;
}

absl::Status TlsFiles::Reload() {
  std::shared_ptr<const TlsMaterial> read;
  {
    absl::MutexLock lock(&mutex_);
    if (absl::Status problem = ReadAgain(); !problem.ok()) return problem;
    read = material_;
  }
  on_change_(*read);
  return absl::OkStatus();
}

absl::Status TlsFiles::ReadAgain() {
  // Take the stamps before reading the files, so that a change during the read is noticed next
  // time.
  stamps_ = StampsNow();
  absl::StatusOr<TlsMaterial> read = ReadTlsFiles(paths_, clock_.Now());
  if (!read.ok()) {
    return absl::Status(
        read.status().code(),
        absl::StrCat("the files of TLS have changed and cannot be used, so connections go on "
                     "with those before: ",
                     read.status().message()));
  }
  material_ = std::make_shared<const TlsMaterial>(*std::move(read));
  return absl::OkStatus();
}

}  // namespace wan::server
