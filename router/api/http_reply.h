// One HTTP reply made of the events of one or more generations: whole, or as server-sent events.
// The sinks of its generations keep it alive; any thread may call any method.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/http/http_server.h"
#include "router/api/reply_format.h"
#include "router/inference/generator.h"
#include "router/inference/reply_event.h"

namespace levin {

struct HttpReplyOptions {
  int32_t choices = 1;
  int64_t prompt_tokens = 0;     // of all choices
  std::string request_id;        // for messages about internal errors
  HttpHeaders headers;           // of a good reply
  int64_t ping_interval_ms = 0;  // of a silent stream; 0: none
  // Bytes that may wait for a slow reader before deltas are merged instead.
  size_t buffered_bytes_max = 256 * 1024;
};

class HttpReply : public std::enable_shared_from_this<HttpReply> {
 public:
  virtual ~HttpReply() = default;

  // Before the first event can come: watches for the client's leaving, and gets ready to stream.
  void Begin();

  // The sink of one choice. At most one for each.
  std::unique_ptr<ReplySink> SinkOf(int32_t choice);
  // The running generation of a choice: cancelled if the reply ends early.
  void Attach(std::shared_ptr<Reply> generation);
  // Ends the reply with an error, and with it all generations.
  void Fail(const Status& status);

 protected:
  HttpReply(std::unique_ptr<ReplyFormat> format, std::shared_ptr<HttpResponder> responder,
            HttpReplyOptions options);

  virtual void OpenStream() REQUIRES(mutex_) {}
  // With the mutex held. Each choice's events in order.
  virtual void Take(int32_t choice, ReplyEvent event) REQUIRES(mutex_) = 0;
  virtual void AfterBatch() REQUIRES(mutex_) {}
  virtual void Complete() REQUIRES(mutex_) = 0;  // all choices are
  virtual void SendError(const Status& status) REQUIRES(mutex_) = 0;

  const std::unique_ptr<ReplyFormat> format_;
  const std::shared_ptr<HttpResponder> responder_;
  const HttpReplyOptions options_;
  Mutex mutex_;
  ReplyUsage usage_ GUARDED_BY(mutex_);  // of the choices that are complete
  bool over_ GUARDED_BY(mutex_) = false;

 private:
  class ChoiceSink;

  void OnEvents(int32_t choice, std::vector<ReplyEvent> events);
  void AddUsage(const ReplyUsage& usage) REQUIRES(mutex_);
  void ClientGone();
  // The generations to cancel when the reply is over early; to be done without the mutex.
  std::vector<std::shared_ptr<Reply>> EndLocked() REQUIRES(mutex_);

  int32_t completed_ GUARDED_BY(mutex_) = 0;
  std::vector<std::shared_ptr<Reply>> generations_ GUARDED_BY(mutex_);
};

std::shared_ptr<HttpReply> MakeWholeReply(std::unique_ptr<ReplyFormat> format,
                                          std::shared_ptr<HttpResponder> responder,
                                          HttpReplyOptions options);
std::shared_ptr<HttpReply> MakeStreamedReply(std::unique_ptr<ReplyFormat> format,
                                             std::shared_ptr<HttpResponder> responder,
                                             HttpReplyOptions options, const ReplyShape& shape);

}  // namespace levin
