#include "server/http/page.h"

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/http/entity_tag.h"
#include "server/store/digest.h"

namespace wan::server {
namespace {

// Returns the text between "<NAME>" and "</NAME>", of which the browser computes the hash.
std::string_view ElementOf(std::string_view html, const std::string& name) {
  const std::string begin = absl::StrCat("<", name, ">");
  const size_t at = html.find(begin);
  if (at == std::string_view::npos) return {};
  html.remove_prefix(at + begin.size());
  return html.substr(0, html.find(absl::StrCat("</", name, ">")));
}

// Returns the hash by which Content-Security-Policy allows the page's script or style.
std::string SourceOf(const std::string& element) {
  const std::string hash = absl::HexStringToBytes(Sha256Hex(ElementOf(kPageHtml, element)));
  return absl::StrCat("'sha256-", absl::Base64Escape(hash), "'");
}

HttpFields MakeFields() {
  return {{"Content-Type", "text/html; charset=utf-8"},
          {"ETag", absl::StrCat("\"", Sha256Hex(kPageHtml), "\"")},
          {"Cache-Control", "no-cache"},
          {"Content-Security-Policy",
           absl::StrCat("default-src 'none'; script-src ", SourceOf("script"), "; style-src ",
                        SourceOf("style"),
                        "; connect-src 'self'; img-src blob: data:; media-src 'self' blob:; "
                        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
                        "require-trusted-types-for 'script'; trusted-types 'none'")},
          {"X-Content-Type-Options", "nosniff"},
          {"X-Frame-Options", "DENY"},
          {"Cross-Origin-Opener-Policy", "same-origin"},
          {"Cross-Origin-Resource-Policy", "same-origin"},
          {"Referrer-Policy", "same-origin"}};
}

}  // namespace

HttpAnswer PageAnswer(const HttpHead& head) {
  static const auto* const fields = new HttpFields(MakeFields());
  static const auto* const tag = new std::string((*fields)[1].second);
  HttpAnswer answer;
  answer.fields = *fields;
  if (TagListed(head.All("if-none-match"), *tag)) {
    answer.status = 304;
  } else {
    answer.body = std::string(kPageHtml);
  }
  return answer;
}

}  // namespace wan::server
