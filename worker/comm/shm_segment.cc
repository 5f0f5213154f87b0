#include "worker/comm/shm_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

namespace levin {
namespace {

constexpr uint64_t kMagic = 0x314d48534e56454cull;  // "LEVNSHM1"

int64_t SegmentBytes(int ranks, int64_t slot_bytes) {
  const int64_t lines = static_cast<int64_t>(sizeof(ShmHeader) + ranks * sizeof(RankLine));
  return lines + 2 * (int64_t{ranks} + 1) * slot_bytes;
}

Status SystemError(const std::string& what, const std::string& name) {
  return Unavailable(what + " shared memory '" + name + "': " + std::strerror(errno));
}

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

Result<std::byte*> Map(int fd, int64_t bytes, const std::string& name) {
  void* base = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) return Error(SystemError("cannot map", name));
  return static_cast<std::byte*>(base);
}

}  // namespace

Result<ShmSegment> ShmSegment::Create(const std::string& name, int ranks, int64_t slot_bytes) {
  const Descriptor file{shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600)};
  if (file.fd < 0) return Error(SystemError("cannot create", name));
  const int64_t bytes = SegmentBytes(ranks, slot_bytes);
  // posix_fallocate, not ftruncate: too small a /dev/shm must be an error here, not a SIGBUS later.
  if (const int error = posix_fallocate(file.fd, 0, bytes); error != 0) {
    shm_unlink(name.c_str());
    return Error(ResourceExhausted("shared memory '" + name + "' needs " + std::to_string(bytes) +
                                   " bytes: " + std::strerror(error)));
  }
  Result<std::byte*> base = Map(file.fd, bytes, name);
  if (!base) {
    shm_unlink(name.c_str());
    return Error(std::move(base).error());
  }
  ShmSegment segment(name, *base, bytes, true);
  auto* header = new (*base) ShmHeader{};
  for (int r = 0; r < ranks; ++r) new (&segment.line(r)) RankLine{};
  header->slot_bytes = slot_bytes;
  header->ranks = ranks;
  header->magic = kMagic;
  return segment;
}

Result<ShmSegment> ShmSegment::Open(const std::string& name, int ranks, int64_t slot_bytes) {
  const Descriptor file{shm_open(name.c_str(), O_RDWR, 0600)};
  if (file.fd < 0 && errno == ENOENT) return Error(NotFound("no shared memory '" + name + "'"));
  if (file.fd < 0) return Error(SystemError("cannot open", name));
  const int64_t bytes = SegmentBytes(ranks, slot_bytes);
  struct stat info {};
  if (fstat(file.fd, &info) != 0) return Error(SystemError("cannot stat", name));
  if (info.st_size != bytes) {
    return Error(FailedPrecondition(
        "shared memory '" + name + "' has " + std::to_string(info.st_size) + " bytes, expected " +
        std::to_string(bytes) + " for " + std::to_string(ranks) + " ranks"));
  }
  ASSIGN_OR_RETURN(std::byte * base, Map(file.fd, bytes, name));
  ShmSegment segment(name, base, bytes, false);
  const ShmHeader& header = segment.header();
  if (header.magic != kMagic || header.ranks != ranks || header.slot_bytes != slot_bytes) {
    return Error(FailedPrecondition("shared memory '" + name + "' was made for " +
                                    std::to_string(header.ranks) + " ranks, expected " +
                                    std::to_string(ranks)));
  }
  return segment;
}

ShmSegment::~ShmSegment() {
  if (base_ == nullptr) return;
  Unlink();
  munmap(base_, static_cast<size_t>(bytes_));
}

ShmSegment::ShmSegment(ShmSegment&& other) noexcept
    : name_(std::move(other.name_)),
      base_(std::exchange(other.base_, nullptr)),
      bytes_(other.bytes_),
      linked_(std::exchange(other.linked_, false)) {}

void ShmSegment::Unlink() {
  if (std::exchange(linked_, false)) shm_unlink(name_.c_str());
}

RankLine& ShmSegment::line(int rank) const {
  return reinterpret_cast<RankLine*>(base_ + sizeof(ShmHeader))[rank];
}

std::byte* ShmSegment::slot(int rank, int parity) const {
  const int ranks = header().ranks;
  std::byte* slots = base_ + sizeof(ShmHeader) + ranks * sizeof(RankLine);
  return slots + (int64_t{parity} * (ranks + 1) + rank) * header().slot_bytes;
}

std::byte* ShmSegment::result(int parity) const { return slot(header().ranks, parity); }

}  // namespace levin
