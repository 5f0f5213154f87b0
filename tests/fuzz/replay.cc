// main() for a fuzzer without libFuzzer: every file of its corpus, then mutations of them.
//   NAME_replay CORPUS_FOLDER DICTIONARY MUTATIONS [SEED]
// An input that ends the process is kept as a file, and its number and seed are printed.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/replay_mutator.h"
#include "tests/fuzz/replay_words.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// Of the sanitizers, where they are linked in.
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace levin::testing {
namespace {

constexpr unsigned kSecondsMax = 60;  // for one input

// What runs now, for a handler that may not allocate.
struct {
  const char* data = nullptr;
  size_t size = 0;
  char name[512] = "";
  char kept[512] = "";
} running;

void Say(const char* text) {
  (void)!::write(STDERR_FILENO, text, std::char_traits<char>::length(text));
}

void KeepInput() {
  Say("\n");
  Say(running.name);
  const int file = ::open(running.kept, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file >= 0 &&
      ::write(file, running.data, running.size) == static_cast<ssize_t>(running.size)) {
    Say(" ended the process; input kept in ");
    Say(running.kept);
  } else {
    Say(" ended the process; its input could not be kept");
  }
  Say("\n");
}

void OnSignal(int signal) {
  if (signal == SIGALRM) Say("\nan input takes too long");
  KeepInput();
  ::_exit(1);
}

void WatchForDeath() {
  std::signal(SIGABRT, OnSignal);
  std::signal(SIGALRM, OnSignal);
  if (__sanitizer_set_death_callback != nullptr) return __sanitizer_set_death_callback(KeepInput);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, OnSignal);
}

void Run(const Bytes& input, const std::string& name) {
  // A copy of just that size: reads beyond its end are seen by the sanitizers.
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  running.data = input.data();
  running.size = input.size();
  std::snprintf(running.name, sizeof running.name, "%s", name.c_str());
  ::alarm(kSecondsMax);
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  ::alarm(0);
}

Bytes ReadAll(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::filesystem::path> FilesOf(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

int Refuse(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  return 2;
}

int Main(int argc, char** argv) {
  if (argc < 4) return Refuse("usage: NAME_replay CORPUS_FOLDER DICTIONARY MUTATIONS [SEED]");
  const std::vector<std::filesystem::path> files = FilesOf(argv[1]);
  if (files.empty()) return Refuse(std::string("no corpus in ") + argv[1]);
  if (!std::filesystem::exists(argv[2])) return Refuse(std::string("no dictionary ") + argv[2]);
  const auto words = ParseWords(ReadAll(argv[2]));
  if (!words) return Refuse(std::string("a line that is no word in ") + argv[2]);
  const long mutations = std::strtol(argv[3], nullptr, 10);
  const uint64_t seed = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 1;
  std::snprintf(running.kept, sizeof running.kept, "%s-crash", argv[0]);

  WatchForDeath();
  std::vector<Bytes> corpus;
  for (const auto& path : files) {
    corpus.push_back(ReadAll(path));
    Run(corpus.back(), path.filename().string());
  }
  Mutator mutator(corpus, *words, seed);
  for (long i = 0; i < mutations; ++i) {
    Run(mutator.Next(), "mutation " + std::to_string(i) + " of seed " + std::to_string(seed));
  }
  std::printf("%zu files of the corpus and %ld mutations of seed %llu: none ended the process\n",
              corpus.size(), mutations, static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  return 0;
}

}  // namespace
}  // namespace levin::testing

int main(int argc, char** argv) { return levin::testing::Main(argc, argv); }
