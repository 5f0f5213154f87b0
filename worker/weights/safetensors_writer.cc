#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstdio>
#include <set>
#include <system_error>

#include "worker/weights/safetensors.h"

namespace levin {
namespace {

namespace json = boost::json;

std::string HeaderText(std::span<const NamedTensor> tensors) {
  json::object header;
  int64_t offset = 0;
  for (const NamedTensor& named : tensors) {
    json::array shape;
    for (int i = 0; i < named.tensor.shape.rank(); ++i) shape.push_back(named.tensor.shape[i]);
    header[named.name] = {{"dtype", Name(named.tensor.dtype)},
                          {"shape", std::move(shape)},
                          {"data_offsets", {offset, offset + named.tensor.bytes()}}};
    offset += named.tensor.bytes();
  }
  std::string text = json::serialize(header);
  text.append((8 - text.size() % 8) % 8, ' ');  // the data begins aligned
  return text;
}

// A file beside the final one; removed unless Commit succeeds.
class Draft final {
 public:
  explicit Draft(const std::filesystem::path& path)
      : path_(path), draft_(path.string() + ".draft-" + std::to_string(::getpid())) {
    fd_ = ::open(draft_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd_ < 0) error_ = errno;
  }
  ~Draft() {
    if (fd_ >= 0) ::close(fd_);
    if (fd_ >= 0 && !committed_) ::unlink(draft_.c_str());
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  void Write(std::span<const std::byte> bytes) {
    while (error_ == 0 && !bytes.empty()) {
      const ssize_t wrote = ::write(fd_, bytes.data(), bytes.size());
      if (wrote >= 0) {
        bytes = bytes.subspan(static_cast<size_t>(wrote));
      } else if (errno != EINTR) {
        error_ = errno;
      }
    }
  }

  Status Commit() {
    if (error_ == 0 && ::fsync(fd_) != 0) error_ = errno;
    if (error_ == 0 && std::rename(draft_.c_str(), path_.c_str()) != 0) error_ = errno;
    if (error_ != 0) {
      return FailedPrecondition("cannot write '" + path_.string() +
                                "': " + std::generic_category().message(error_));
    }
    committed_ = true;
    return Status::Ok();
  }

 private:
  std::filesystem::path path_;
  std::string draft_;
  int fd_ = -1;
  int error_ = 0;
  bool committed_ = false;
};

}  // namespace

Status WriteSafetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors) {
  std::set<std::string_view> names;
  for (const NamedTensor& named : tensors) {
    if (!names.insert(named.name).second || named.name == "__metadata__") {
      return InvalidArgument("tensor name '" + named.name + "' cannot be written twice or at all");
    }
  }
  const std::string header = HeaderText(tensors);
  std::array<std::byte, 8> length;
  for (size_t i = 0; i < length.size(); ++i) {
    length[i] = static_cast<std::byte>(uint64_t{header.size()} >> (8 * i));
  }
  Draft draft(path);
  draft.Write(length);
  draft.Write(std::as_bytes(std::span(header)));
  for (const NamedTensor& named : tensors) draft.Write(named.tensor.span());
  return draft.Commit();
}

}  // namespace levin
