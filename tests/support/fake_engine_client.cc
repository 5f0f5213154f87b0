#include "tests/support/fake_engine_client.h"

#include <algorithm>

namespace levin {

struct FakeEngineClient::Entry {
  explicit Entry(std::unique_ptr<TokenSink> sink) : events(std::move(sink)) {}
  SinkQueue events;
  Generation generation;
  Script script;
  size_t next = 0;
  bool admitted = false;
  bool over = false;
};

struct FakeEngineClient::Core {
  mutable Mutex mutex;
  mutable CondVar changed;
  bool stopping = false;
  std::deque<Script> scripts;
  Script fallback;
  std::deque<Status> refusals;
  std::vector<std::shared_ptr<Entry>> live;
  std::vector<std::shared_ptr<Entry>> ended;  // over, to be delivered
  std::vector<Generation> submitted;
  std::vector<std::pair<uint64_t, CancelReason>> cancels;
  std::shared_ptr<const GroupInfo> group;
  Capacity capacity;

  void End(const std::shared_ptr<Entry>& entry, Status status, FinishReason reason) {
    if (entry->over) return;
    entry->over = true;
    Usage usage;
    usage.prompt_tokens = static_cast<int64_t>(entry->generation.prompt.size());
    usage.cached_tokens = entry->script.cached_tokens;
    usage.output_tokens = static_cast<int64_t>(entry->next);
    entry->events.PushDone(std::move(status), reason, usage);
    ended.push_back(entry);
    std::erase(live, entry);
  }

  // One step of one generation.
  void Advance(const std::shared_ptr<Entry>& entry) {
    const Script& script = entry->script;
    if (!entry->admitted) {
      entry->admitted = true;
      entry->events.PushAdmitted(script.cached_tokens);
      return;
    }
    const Generation& generation = entry->generation;
    const size_t limit = static_cast<size_t>(generation.max_new_tokens);
    const size_t first = entry->next;
    std::vector<SampledToken> tokens;
    bool stopped = false;
    while (tokens.size() < script.tokens_per_step && entry->next < script.tokens.size() &&
           entry->next < limit && !stopped) {
      const SampledToken& token = script.tokens[entry->next++];
      const auto& stops = generation.sampling.stop_ids;
      stopped = std::find(stops.begin(), stops.end(), token.token) != stops.end();
      tokens.push_back(token);
    }
    if (!tokens.empty()) entry->events.PushTokens(static_cast<int64_t>(first), std::move(tokens));
    if (stopped) return End(entry, Status::Ok(), FinishReason::kStop);
    if (entry->next >= limit) return End(entry, Status::Ok(), FinishReason::kLength);
    if (entry->next < script.tokens.size() || script.endless) return;
    if (entry->next > first) return;  // the end comes with the next step
    End(entry, script.status, script.status.ok() ? script.reason : FinishReason::kError);
  }
};

class FakeEngineClient::FakeCall final : public Call {
 public:
  FakeCall(std::shared_ptr<Core> core, std::shared_ptr<Entry> entry)
      : core_(std::move(core)), entry_(std::move(entry)) {}
  ~FakeCall() override { FakeCall::Cancel(CancelReason::kClientGone); }

  void Cancel(CancelReason reason) override {
    MutexLock lock(core_->mutex);
    if (entry_->over) return;
    core_->cancels.emplace_back(entry_->generation.ordinal, reason);
    if (reason == CancelReason::kDeadline) {
      core_->End(entry_, Status(Code::kDeadlineExceeded, "DEADLINE_EXCEEDED", "deadline passed"),
                 FinishReason::kDeadline);
    } else {
      core_->End(entry_, Status::Ok(), FinishReason::kCancelled);
    }
    core_->changed.NotifyAll();
  }

 private:
  const std::shared_ptr<Core> core_;
  const std::shared_ptr<Entry> entry_;
};

FakeEngineClient::Script FakeEngineClient::Tokens(const std::vector<TokenId>& ids) {
  Script script;
  for (TokenId id : ids) script.tokens.emplace_back().token = id;
  return script;
}

FakeEngineClient::Script FakeEngineClient::Failure(Status status,
                                                   const std::vector<TokenId>& ids_before) {
  Script script = Tokens(ids_before);
  script.status = std::move(status);
  return script;
}

FakeEngineClient::FakeEngineClient(Mode mode) : core_(std::make_shared<Core>()) {
  GroupInfo group;
  group.group_id = "fake";
  group.epoch = 1;
  group.max_model_len = 4096;
  group.max_new_tokens = 4096;
  group.block_tokens = 64;
  group.max_num_seqs = 16;
  group.vocab_size = 200064;
  group.ranks = 1;
  core_->group = std::make_shared<GroupInfo>(group);
  if (mode == Mode::kByItself) {
    thread_ = std::thread([core = core_] {
      for (;;) {
        {
          MutexLock lock(core->mutex);
          const auto idle = [&] {
            return core->ended.empty() &&
                   std::all_of(core->live.begin(), core->live.end(), [](const auto& entry) {
                     return entry->script.endless && entry->next >= entry->script.tokens.size();
                   });
          };
          while (!core->stopping && idle()) core->changed.Wait(core->mutex);
          if (core->stopping) return;
        }
        StepCore(*core);
      }
    });
  }
}

FakeEngineClient::~FakeEngineClient() {
  {
    MutexLock lock(core_->mutex);
    core_->stopping = true;
    core_->changed.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
  FailAll(Status(Code::kUnavailable, "DRAINING", "the fake engine is gone"));
}

void FakeEngineClient::Answer(Script script) {
  MutexLock lock(core_->mutex);
  core_->scripts.push_back(std::move(script));
}

void FakeEngineClient::AnswerAllWith(Script script) {
  MutexLock lock(core_->mutex);
  core_->fallback = std::move(script);
}

void FakeEngineClient::RefuseNext(Status status) {
  MutexLock lock(core_->mutex);
  core_->refusals.push_back(std::move(status));
}

bool FakeEngineClient::StepCore(Core& core) {
  std::vector<std::shared_ptr<Entry>> touched;
  bool alive = false;
  {
    MutexLock lock(core.mutex);
    touched = core.live;
    for (const auto& entry : touched) core.Advance(entry);
    touched.insert(touched.end(), core.ended.begin(), core.ended.end());
    core.ended.clear();
    alive = !core.live.empty();
  }
  for (const auto& entry : touched) entry->events.Deliver();
  return alive;
}

bool FakeEngineClient::Step() { return StepCore(*core_); }

void FakeEngineClient::RunToEnd() {
  while (Step()) {
  }
}

void FakeEngineClient::FailAll(const Status& status) {
  std::vector<std::shared_ptr<Entry>> touched;
  {
    MutexLock lock(core_->mutex);
    const auto live = core_->live;
    for (const auto& entry : live) core_->End(entry, status, FinishReason::kError);
    touched.swap(core_->ended);
  }
  for (const auto& entry : touched) entry->events.Deliver();
}

void FakeEngineClient::set_group(std::optional<GroupInfo> group) {
  MutexLock lock(core_->mutex);
  core_->group = group ? std::make_shared<const GroupInfo>(*group) : nullptr;
}

void FakeEngineClient::set_capacity(const Capacity& capacity) {
  MutexLock lock(core_->mutex);
  core_->capacity = capacity;
}

std::vector<Generation> FakeEngineClient::submitted() const {
  MutexLock lock(core_->mutex);
  return core_->submitted;
}

std::vector<std::pair<uint64_t, CancelReason>> FakeEngineClient::cancels() const {
  MutexLock lock(core_->mutex);
  return core_->cancels;
}

int FakeEngineClient::live() const {
  MutexLock lock(core_->mutex);
  return static_cast<int>(core_->live.size());
}

bool FakeEngineClient::WaitForSubmits(size_t count, std::chrono::seconds at_most) const {
  const auto until = std::chrono::steady_clock::now() + at_most;
  MutexLock lock(core_->mutex);
  while (core_->submitted.size() < count) {
    if (!core_->changed.WaitUntil(core_->mutex, until)) return false;
  }
  return true;
}

bool FakeEngineClient::WaitForCancels(size_t count, std::chrono::seconds at_most) const {
  const auto until = std::chrono::steady_clock::now() + at_most;
  MutexLock lock(core_->mutex);
  while (core_->cancels.size() < count) {
    if (!core_->changed.WaitUntil(core_->mutex, until)) return false;
  }
  return true;
}

Result<std::unique_ptr<Call>> FakeEngineClient::Submit(Generation generation,
                                                       std::unique_ptr<TokenSink> sink) {
  MutexLock lock(core_->mutex);
  if (!core_->refusals.empty()) {
    Status refusal = std::move(core_->refusals.front());
    core_->refusals.pop_front();
    return Error(std::move(refusal));
  }
  auto entry = std::make_shared<Entry>(std::move(sink));
  generation.ordinal = core_->submitted.size() + 1;
  core_->submitted.push_back(generation);
  entry->generation = std::move(generation);
  if (core_->scripts.empty()) {
    entry->script = core_->fallback;
  } else {
    entry->script = std::move(core_->scripts.front());
    core_->scripts.pop_front();
  }
  core_->live.push_back(entry);
  core_->changed.NotifyAll();
  return std::make_unique<FakeCall>(core_, std::move(entry));
}

Capacity FakeEngineClient::capacity() const {
  MutexLock lock(core_->mutex);
  return core_->capacity;
}

std::shared_ptr<const GroupInfo> FakeEngineClient::group() const {
  MutexLock lock(core_->mutex);
  return core_->group;
}

}  // namespace levin
