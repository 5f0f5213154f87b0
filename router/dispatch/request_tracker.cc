#include "router/dispatch/request_tracker.h"

#include <xxhash.h>

#include <algorithm>
#include <string>

#include "common/base/check.h"

namespace levin {
namespace {

constexpr int64_t kRetryAfterMsMin = 1'000;
constexpr int64_t kRetryAfterMsMax = 60'000;

Status DeadlineExceeded() {
  return {Code::kDeadlineExceeded, "DEADLINE_EXCEEDED", "the deadline of this request has passed"};
}

// The group is gone and with it the generation: only one that showed nothing may be asked again as
// if nothing had happened.
Status Lost(bool after_tokens, std::string_view what_happened) {
  std::string message("the worker group ended (");
  message += what_happened;
  if (after_tokens) {
    return {Code::kAborted, "ENGINE_RESTARTED", message + ") in the middle of this answer"};
  }
  return Status(Code::kUnavailable, "EPOCH_ENDED", message + ") before the first token; ask again")
      .WithRetryAfterMs(kRetryAfterMsMin);
}

}  // namespace

// Guarded by the tracker's mutex, but for `events`, which protects itself.
struct RequestTracker::Entry {
  explicit Entry(std::unique_ptr<TokenSink> sink) : events(std::move(sink)) {}

  SinkQueue events;
  Generation generation;  // until it is sent; then only ordinal and attempt hold
  TimePoint deadline = TimePoint::max();
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  std::vector<TokenId> ids;  // received
  bool sent = false;
  bool admitted = false;
  bool over = false;

  int64_t next_index() const { return static_cast<int64_t>(ids.size()); }
};

class RequestTracker::CallHandle final : public Call {
 public:
  CallHandle(std::weak_ptr<RequestTracker> tracker, EntryPtr entry)
      : tracker_(std::move(tracker)), entry_(std::move(entry)) {}
  ~CallHandle() override { CallHandle::Cancel(CancelReason::kClientGone); }

  void Cancel(CancelReason reason) override {
    if (auto tracker = tracker_.lock()) tracker->Cancel(entry_, reason);
  }

 private:
  const std::weak_ptr<RequestTracker> tracker_;
  const EntryPtr entry_;
};

std::shared_ptr<RequestTracker> RequestTracker::Create(RequestTrackerOptions options,
                                                       const Clock& clock,
                                                       std::function<void()> wake) {
  return std::shared_ptr<RequestTracker>(new RequestTracker(options, clock, std::move(wake)));
}

RequestTracker::RequestTracker(RequestTrackerOptions options, const Clock& clock,
                               std::function<void()> wake)
    : options_(options),
      clock_(clock),
      wake_(std::move(wake)),
      refusal_(Code::kUnavailable, "NO_GROUP", "no worker group has answered yet"),
      finished_(options.finished_pace, options.finished_repeat),
      random_(options.random_seed) {}

RequestTracker::~RequestTracker() {
  Shutdown(Status(Code::kUnavailable, "DRAINING", "the router is shutting down"));
}

// --- those who want tokens

Result<std::unique_ptr<Call>> RequestTracker::Submit(Generation generation,
                                                     std::unique_ptr<TokenSink> sink) {
  EntryPtr entry;
  {
    MutexLock lock(mutex_);
    if (!refusal_.ok()) return Error(refusal_);
    if (QueuedLocked() >= options_.queued_max) {
      return Error(Status(Code::kResourceExhausted, "QUEUE_FULL",
                          "the queue is full: " + std::to_string(QueuedLocked()) +
                              " requests wait, at most " + std::to_string(options_.queued_max) +
                              " may")
                       .WithRetryAfterMs(RetryAfterMsLocked()));
    }
    TimePoint deadline = TimePoint::max();
    if (generation.deadline_unix_ms > 0) {
      const int64_t left_ms = generation.deadline_unix_ms - clock_.UnixMs();
      if (left_ms <= 0) return Error(DeadlineExceeded());
      deadline = clock_.Now() + std::chrono::milliseconds(left_ms);
    }
    entry = std::make_shared<Entry>(std::move(sink));
    entry->deadline = deadline;
    entry->prompt_tokens = static_cast<int64_t>(generation.prompt.size());
    entry->generation = std::move(generation);
    entry->generation.request_id = NewRequestIdLocked();
    entry->generation.attempt = 1;
    unsent_.push_back(entry);
    if (deadline != TimePoint::max()) deadlines_.emplace(deadline, entry);
  }
  wake_();
  return std::make_unique<CallHandle>(weak_from_this(), std::move(entry));
}

void RequestTracker::Cancel(const EntryPtr& entry, CancelReason reason) {
  {
    MutexLock lock(mutex_);
    if (entry->over) return;
    if (entry->sent) {
      cancels_.push_back({entry->generation.ordinal, entry->generation.attempt, reason});
    }
    if (reason == CancelReason::kDeadline) {
      EndHereLocked(entry, DeadlineExceeded(), FinishReason::kDeadline);
    } else {
      EndHereLocked(entry, Status::Ok(), FinishReason::kCancelled);
    }
  }
  wake_();
}

// --- the state of the group

void RequestTracker::Open() {
  {
    MutexLock lock(mutex_);
    if (shut_down_) return;
    open_ = true;
    refusal_ = Status::Ok();
    finished_.Reopened();
  }
  wake_();
}

void RequestTracker::Pause(Status why) {
  MutexLock lock(mutex_);
  if (open_ && !shut_down_) refusal_ = std::move(why);
}

void RequestTracker::Resume() {
  {
    MutexLock lock(mutex_);
    if (!open_ || shut_down_) return;
    refusal_ = Status::Ok();
  }
  wake_();
}

void RequestTracker::Close(Status why, std::string_view what_happened) {
  {
    MutexLock lock(mutex_);
    open_ = false;
    if (!shut_down_) refusal_ = std::move(why);
  }
  EndAll([&](const Entry& entry) { return Lost(entry.next_index() > 0, what_happened); });
}

void RequestTracker::Shutdown(Status why) {
  {
    MutexLock lock(mutex_);
    open_ = false;
    shut_down_ = true;
    refusal_ = why;
  }
  EndAll([&](const Entry&) { return why; });
}

void RequestTracker::EndAll(const std::function<Status(const Entry&)>& status) {
  {
    MutexLock lock(mutex_);
    std::vector<EntryPtr> all(unsent_.begin(), unsent_.end());
    for (const auto& [ordinal, entry] : sent_) all.push_back(entry);
    for (const EntryPtr& entry : all) EndHereLocked(entry, status(*entry), FinishReason::kError);
    cancels_.clear();
    at_leader_.clear();
  }
  DeliverPending();
}

// --- frames to the leader

std::optional<OutgoingFrame> RequestTracker::NextFrame() {
  const TimePoint now = clock_.Now();
  MutexLock lock(mutex_);
  if (!open_) return std::nullopt;
  if (!cancels_.empty()) {
    CancelFrame cancel = cancels_.front();
    cancels_.pop_front();
    return cancel;
  }
  if (auto level = finished_.Take(now)) return std::move(*level);
  ExpireLocked(now);  // what has just expired must not be sent
  if (MaySubmitLocked()) return SendLocked(now);
  return std::nullopt;
}

bool RequestTracker::MaySubmitLocked() const {
  return !unsent_.empty() && refusal_.ok() &&
         static_cast<int64_t>(at_leader_.size()) < options_.leader_queued_max;
}

SubmitFrame RequestTracker::SendLocked(TimePoint now) {
  EntryPtr entry = std::move(unsent_.front());
  unsent_.pop_front();
  const uint64_t ordinal = finished_.watermark() + 1;
  finished_.Submitted(ordinal);
  entry->generation.ordinal = ordinal;
  entry->sent = true;
  sent_.emplace(ordinal, entry);
  at_leader_.insert(ordinal);

  SubmitFrame frame;
  frame.generation = std::move(entry->generation);
  entry->generation = {};
  entry->generation.ordinal = ordinal;
  entry->generation.attempt = frame.generation.attempt;
  if (entry->deadline != TimePoint::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(entry->deadline - now);
    frame.remaining_ms = std::max<int64_t>(left.count(), 1);
  }
  return frame;
}

TimePoint RequestTracker::Tick() {
  const TimePoint now = clock_.Now();
  MutexLock lock(mutex_);
  ExpireLocked(now);
  TimePoint next = deadlines_.empty() ? TimePoint::max() : deadlines_.begin()->first;
  if (open_) next = std::min(next, finished_.Due().value_or(TimePoint::max()));
  return next;
}

void RequestTracker::ExpireLocked(TimePoint now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const EntryPtr entry = deadlines_.begin()->second;
    if (entry->sent) {
      cancels_.push_back(
          {entry->generation.ordinal, entry->generation.attempt, CancelReason::kDeadline});
    }
    EndHereLocked(entry, DeadlineExceeded(), FinishReason::kDeadline);
  }
}

void RequestTracker::DeliverPending() {
  std::vector<EntryPtr> entries;
  {
    MutexLock lock(mutex_);
    entries.swap(undelivered_);
  }
  for (const EntryPtr& entry : entries) entry->events.Deliver();
}

// --- frames of the leader

void RequestTracker::OnAccepted(uint64_t ordinal, bool admitted, int64_t cached_tokens) {
  {
    MutexLock lock(mutex_);
    if (!admitted) return;
    at_leader_.erase(ordinal);
    const EntryPtr entry = FindLocked(ordinal);
    if (entry == nullptr) return;
    if (!entry->admitted) entry->cached_tokens = cached_tokens;
    AdmitLocked(entry);
    undelivered_.push_back(entry);
  }
  DeliverPending();
  wake_();
}

Status RequestTracker::OnTokens(std::vector<TokenRunIn> runs) {
  std::vector<EntryPtr> touched;
  Status status;
  {
    MutexLock lock(mutex_);
    for (TokenRunIn& run : runs) {
      status = AppendLocked(std::move(run), touched);
      if (!status.ok()) break;
    }
  }
  for (const EntryPtr& entry : touched) entry->events.Deliver();
  return status;
}

Status RequestTracker::AppendLocked(TokenRunIn run, std::vector<EntryPtr>& touched) {
  const EntryPtr entry = FindLocked(run.ordinal);
  if (entry == nullptr) return Status::Ok();
  AdmitLocked(entry);
  if (run.first_index > entry->next_index()) {
    return {Code::kInternal, "INTERNAL",
            "generation " + std::to_string(run.ordinal) + ": tokens from index " +
                std::to_string(run.first_index) + " came, expected " +
                std::to_string(entry->next_index())};
  }
  const int64_t seen = entry->next_index() - run.first_index;
  if (seen < static_cast<int64_t>(run.tokens.size())) {
    run.tokens.erase(run.tokens.begin(), run.tokens.begin() + seen);
    const int64_t first = entry->next_index();
    for (const SampledToken& token : run.tokens) entry->ids.push_back(token.token);
    entry->events.PushTokens(first, std::move(run.tokens));
  }
  touched.push_back(entry);
  return Status::Ok();
}

Status RequestTracker::OnFinished(uint64_t ordinal, FinishReason reason, const Usage& usage,
                                  uint64_t ids_hash) {
  {
    MutexLock lock(mutex_);
    at_leader_.erase(ordinal);
    const EntryPtr entry = FindLocked(ordinal);
    if (entry == nullptr) return Status::Ok();
    if (reason == FinishReason::kStop || reason == FinishReason::kLength) {
      RETURN_IF_ERROR(CheckWhole(*entry, usage.output_tokens, ids_hash));
    }
    Status status;
    if (reason == FinishReason::kDeadline) status = DeadlineExceeded();
    if (reason == FinishReason::kCancelled) {
      status = Lost(entry->next_index() > 0, "it gave up this router's requests");
    }
    if (reason == FinishReason::kError || reason == FinishReason::kNone) {
      status = Internal("the generation failed in the worker group");
    }
    EndLocked(entry, std::move(status), reason, usage);
  }
  DeliverPending();
  wake_();
  return Status::Ok();
}

// What came must be all of what was drawn, token for token.
Status RequestTracker::CheckWhole(const Entry& entry, int64_t output_tokens, uint64_t ids_hash) {
  const std::string name = "generation " + std::to_string(entry.generation.ordinal);
  if (output_tokens > entry.next_index()) {
    return {Code::kInternal, "INTERNAL",
            name + " ended with " + std::to_string(output_tokens) + " tokens, only " +
                std::to_string(entry.next_index()) + " came"};
  }
  const uint64_t hash = XXH3_64bits(entry.ids.data(), entry.ids.size() * sizeof(TokenId));
  if (ids_hash == 0 || ids_hash == hash) return Status::Ok();
  return {Code::kInternal, "INTERNAL", name + ": the tokens that came are not those of the leader"};
}

void RequestTracker::OnError(uint64_t ordinal, Status status) {
  CHECK(!status.ok());
  {
    MutexLock lock(mutex_);
    at_leader_.erase(ordinal);
    const EntryPtr entry = FindLocked(ordinal);
    if (entry == nullptr) return;
    EndHereLocked(entry, std::move(status), FinishReason::kError);
  }
  DeliverPending();
  wake_();
}

void RequestTracker::OnFreed(uint64_t watermark, std::span<const uint64_t> live) {
  {
    MutexLock lock(mutex_);
    finished_.Freed(watermark, live);
    // A generation cancelled while it waited leaves the leader's window when its end is confirmed.
    std::erase_if(at_leader_, [&](uint64_t ordinal) {
      return ordinal <= watermark && !sent_.contains(ordinal) &&
             !std::binary_search(live.begin(), live.end(), ordinal);
    });
  }
  wake_();
}

// --- for heartbeats, metrics and tests

std::vector<uint64_t> RequestTracker::live_ordinals() const {
  MutexLock lock(mutex_);
  return {finished_.live().begin(), finished_.live().end()};
}

int64_t RequestTracker::queued() const {
  MutexLock lock(mutex_);
  return QueuedLocked();
}

int64_t RequestTracker::running() const {
  MutexLock lock(mutex_);
  return admitted_;
}

int64_t RequestTracker::unfreed() const {
  MutexLock lock(mutex_);
  return static_cast<int64_t>(finished_.unfreed());
}

Duration RequestTracker::oldest_unfreed() const {
  MutexLock lock(mutex_);
  const auto ended = finished_.oldest_unfreed();
  return ended ? clock_.Now() - *ended : Duration::zero();
}

// --- under the lock

RequestTracker::EntryPtr RequestTracker::FindLocked(uint64_t ordinal) const {
  const auto it = sent_.find(ordinal);
  return it == sent_.end() ? nullptr : it->second;
}

void RequestTracker::AdmitLocked(const EntryPtr& entry) {
  if (entry->admitted) return;
  entry->admitted = true;
  ++admitted_;
  at_leader_.erase(entry->generation.ordinal);
  entry->events.PushAdmitted(entry->cached_tokens);

  const TimePoint now = clock_.Now();
  if (last_admission_) {
    const double ms = std::chrono::duration<double, std::milli>(now - *last_admission_).count();
    admission_interval_ms_ += 0.1 * (std::min(ms, 10'000.0) - admission_interval_ms_);
  }
  last_admission_ = now;
}

void RequestTracker::EndHereLocked(const EntryPtr& entry, Status status, FinishReason reason) {
  Usage usage;
  usage.prompt_tokens = entry->prompt_tokens;
  usage.cached_tokens = entry->cached_tokens;
  usage.output_tokens = entry->next_index();
  EndLocked(entry, std::move(status), reason, usage);
}

void RequestTracker::EndLocked(const EntryPtr& entry, Status status, FinishReason reason,
                               const Usage& usage) {
  CHECK(!entry->over);
  const EntryPtr keep = entry;  // the containers below may hold the last references
  keep->over = true;
  deadlines_.erase({keep->deadline, keep});
  if (keep->sent) {
    finished_.Ended(keep->generation.ordinal, clock_.Now());
    sent_.erase(keep->generation.ordinal);
    if (keep->admitted) --admitted_;
  } else {
    std::erase(unsent_, keep);
    keep->generation = {};
  }
  keep->events.PushDone(std::move(status), reason, usage);
  undelivered_.push_back(keep);
}

int64_t RequestTracker::QueuedLocked() const {
  return static_cast<int64_t>(unsent_.size() + sent_.size()) - admitted_;
}

// Half the time in which the queue drains at the pace of late.
int64_t RequestTracker::RetryAfterMsLocked() const {
  const double ms = admission_interval_ms_ * static_cast<double>(QueuedLocked()) / 2;
  return std::clamp(static_cast<int64_t>(ms), kRetryAfterMsMin, kRetryAfterMsMax);
}

std::string RequestTracker::NewRequestIdLocked() {
  std::string id(16, '\0');
  for (size_t i = 0; i < id.size(); i += 8) {
    const uint64_t bits = random_();
    for (size_t j = 0; j < 8; ++j) id[i + j] = static_cast<char>(bits >> (8 * j));
  }
  return id;
}

}  // namespace levin
