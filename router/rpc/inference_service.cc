#include "router/rpc/inference_service.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "levin/v1/inference.grpc.pb.h"
#include "router/rpc/call_status.h"
#include "router/rpc/inference_codec.h"
#include "router/rpc/live_generations.h"
#include "router/rpc/model_codec.h"
#include "router/rpc/reply_reactor.h"
#include "router/text/sha256.h"

namespace levin {
namespace {

constexpr size_t kGenerationIdMax = 128;

// Whose key it is, without the key; all are one while none is needed.
std::string OwnerOf(const std::string& authorization) {
  const size_t space = authorization.find(' ');
  return Sha256Hex(authorization.substr(space == std::string::npos ? 0 : space + 1));
}

Result<std::string> GenerationIdOf(const std::string& asked) {
  if (asked.empty()) return "gen-" + NewId();
  const bool visible =
      std::all_of(asked.begin(), asked.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (visible && asked.size() <= kGenerationIdMax) return asked;
  return Error(InvalidArgument("generation_id must be 1 to " + std::to_string(kGenerationIdMax) +
                               " visible ASCII characters")
                   .WithParam("generation_id"));
}

std::string TextOf(const std::vector<TokenId>& ids, const Tokenizer& tokenizer) {
  std::string text;
  for (TokenId id : ids) text += tokenizer.Bytes(id);
  return text;
}

class Service final : public InferenceService, public v1::Inference::CallbackService {
 public:
  Service(Generator& generator, const ApiKeys& keys, const Clock& clock,
          std::function<void()> on_idle)
      : generator_(generator), keys_(keys), clock_(clock), on_idle_(std::move(on_idle)) {}

  grpc::Service& service() override { return *this; }
  void Drain() override { draining_ = true; }
  int in_flight() const override { return streams_; }
  void CancelAll() override { live_.CancelAll(); }

 private:
  using UnaryReactor = grpc::ServerUnaryReactor;
  template <typename Event>
  using StreamReactor = grpc::ServerWriteReactor<Event>;

  // --- the streams

  StreamReactor<v1::GenerateEvent>* Generate(grpc::CallbackServerContext* context,
                                             const v1::GenerateRequest* request) override {
    return Answer<v1::GenerateEvent>(*context, *request, [&] { return PrepareGenerate(*request); });
  }

  StreamReactor<v1::ChatEvent>* Chat(grpc::CallbackServerContext* context,
                                     const v1::ChatRequest* request) override {
    return Answer<v1::ChatEvent>(*context, *request, [&] { return PrepareChat(*request); });
  }

  Result<ReadRequest> PrepareGenerate(const v1::GenerateRequest& request) const {
    ASSIGN_OR_RETURN(ReadRequest read, ReadGenerate(request));
    if (request.has_text()) {
      RETURN_ERROR_IF(generator_.SetTextPrompt(request.text(), read.inference));
    } else {
      ASSIGN_OR_RETURN(read.inference.prompt, ReadIds(request.token_ids().ids(), "token_ids"));
    }
    return read;
  }

  Result<ReadRequest> PrepareChat(const v1::ChatRequest& request) const {
    ASSIGN_OR_RETURN(ReadRequest read, ReadChat(request));
    ASSIGN_OR_RETURN(const std::string json, ChatJson(request));
    RETURN_ERROR_IF(generator_.SetChatPrompt(json, read.inference));
    return read;
  }

  // Everything that can be wrong is found before the first event.
  template <typename Event, typename Request, typename Prepare>
  StreamReactor<Event>* Answer(grpc::CallbackServerContext& context, const Request& request,
                               Prepare prepare) {
    const std::string request_id = RequestIdOf(context);
    auto begun = Begin<Event>(context, request, request_id, prepare);
    if (begun) return *begun;
    return new RefusedReply<Event>(EndOfCall(context, begun.error(), request_id));
  }

  template <typename Event, typename Request, typename Prepare>
  Result<StreamReactor<Event>*> Begin(grpc::CallbackServerContext& context, const Request& request,
                                      const std::string& request_id, Prepare prepare) {
    RETURN_ERROR_IF(Admit(context, request.model()));
    if (draining_) {
      return Error(Status(Code::kUnavailable, "DRAINING", "the server is shutting down"));
    }
    ASSIGN_OR_RETURN(const std::string id, GenerationIdOf(request.generation_id()));
    ASSIGN_OR_RETURN(ReadRequest read, prepare());
    read.inference.timeout_ms = TimeoutMsOf(context, clock_);
    ASSIGN_OR_RETURN(PreparedRequest prepared, generator_.Prepare(std::move(read.inference)));
    auto entry = live_.Add(id, OwnerOf(MetadataOf(context, "authorization")));
    if (entry == nullptr) {
      return Error(Status(Code::kAlreadyExists, "GENERATION_EXISTS",
                          "a generation with this generation_id is running")
                       .WithParam("generation_id"));
    }
    const Tokenizer& tokenizer = generator_.model().tokenizer();
    ReplyFacts facts{.form = read.form,
                     .generation_id = id,
                     .fingerprint = generator_.fingerprint(),
                     .max_tokens = prepared.max_tokens(),
                     .prompt_ids = prepared.generation.prompt,
                     .echo = {}};
    if (read.form.echo) facts.echo = TextOf(facts.prompt_ids, tokenizer);
    context.AddInitialMetadata("x-request-id", request_id);
    ++streams_;
    return ReplyReactor<Event>::Start(generator_, std::move(prepared),
                                      ReplyEvents<Event>(std::move(facts), tokenizer),
                                      {.request_id = request_id,
                                       .entry = std::move(entry),
                                       .on_done = [this] { OnStreamDone(); },
                                       .call = &context},
                                      clock_);
  }

  void OnStreamDone() {
    if (--streams_ == 0 && on_idle_) on_idle_();
  }

  // --- the single calls

  UnaryReactor* Tokenize(grpc::CallbackServerContext* context, const v1::TokenizeRequest* request,
                         v1::TokenizeResponse* response) override {
    return Reply(*context, request->model(), [&] { return DoTokenize(*request, *response); });
  }

  UnaryReactor* Detokenize(grpc::CallbackServerContext* context,
                           const v1::DetokenizeRequest* request,
                           v1::DetokenizeResponse* response) override {
    return Reply(*context, request->model(), [&]() -> Status {
      ASSIGN_OR_RETURN_STATUS(const std::vector<TokenId> ids,
                              ReadIds(request->token_ids(), "token_ids"));
      response->set_text(WholeText(TextOf(ids, generator_.model().tokenizer())));
      return Status::Ok();
    });
  }

  UnaryReactor* GetModel(grpc::CallbackServerContext* context, const v1::GetModelRequest* request,
                         v1::GetModelResponse* response) override {
    return Reply(*context, request->model(), [&] {
      DescribeModel(generator_, draining_, *response);
      if (request->return_tokenizer_config()) {
        response->set_tokenizer_config_json(generator_.model().tokenizer().config_json());
      }
      return Status::Ok();
    });
  }

  UnaryReactor* Abort(grpc::CallbackServerContext* context, const v1::AbortRequest* request,
                      v1::AbortResponse* response) override {
    return Reply(*context, "", [&] {
      const std::vector<std::string> ids(request->generation_ids().begin(),
                                         request->generation_ids().end());
      const std::string owner = OwnerOf(MetadataOf(*context, "authorization"));
      for (std::string& id : live_.Abort(ids, request->all(), owner)) {
        response->add_aborted_ids(std::move(id));
      }
      return Status::Ok();
    });
  }

  Status DoTokenize(const v1::TokenizeRequest& request, v1::TokenizeResponse& response) const {
    const ServedModel& model = generator_.model();
    std::vector<TokenId> ids;
    if (request.has_chat()) {
      ASSIGN_OR_RETURN_STATUS(const std::string json, ChatJson(request.chat()));
      ASSIGN_OR_RETURN_STATUS(ChatPrompt prompt, model.EncodeChat(json));
      ids = std::move(prompt.ids);
    } else if (request.has_text()) {
      ids = model.EncodeText(request.text());
    } else {
      return InvalidArgument("an input is required: text or chat").WithParam("input");
    }
    response.set_count(ids.size());
    response.set_max_model_len(static_cast<uint64_t>(generator_.window()));
    if (request.return_prompt_text()) {
      response.set_prompt_text(WholeText(TextOf(ids, model.tokenizer())));
    }
    if (request.count_only()) return Status::Ok();
    for (TokenId id : ids) {
      response.add_token_ids(static_cast<uint32_t>(id));
      if (request.return_token_strings()) {
        response.add_token_strings(std::string(model.tokenizer().Bytes(id)));
      }
    }
    return Status::Ok();
  }

  template <typename Do>
  UnaryReactor* Reply(grpc::CallbackServerContext& context, const std::string& model, Do what) {
    const std::string request_id = RequestIdOf(context);
    UnaryReactor* reactor = context.DefaultReactor();
    Status status = Admit(context, model);
    if (status.ok()) status = what();
    if (status.ok()) context.AddInitialMetadata("x-request-id", request_id);
    reactor->Finish(EndOfCall(context, status, request_id));
    return reactor;
  }

  // --- for all

  Status Admit(const grpc::CallbackServerContext& context, const std::string& model) const {
    if (!keys_.Allows(MetadataOf(context, "authorization"))) {
      return Status(Code::kUnauthenticated, "UNAUTHENTICATED",
                    "a valid API key is required: authorization: Bearer KEY");
    }
    return generator_.model().CheckName(model);
  }

  template <typename Repeated>
  Result<std::vector<TokenId>> ReadIds(const Repeated& ids, const std::string& path) const {
    const auto vocab = static_cast<uint32_t>(generator_.model().info().vocab_size);
    std::vector<TokenId> out;
    out.reserve(static_cast<size_t>(ids.size()));
    for (const uint32_t id : ids) {
      if (id >= vocab) {
        return Error(InvalidArgument(path + " holds " + std::to_string(id) +
                                     ", which is no token id: they are from 0 to " +
                                     std::to_string(vocab - 1))
                         .WithParam(path));
      }
      out.push_back(static_cast<TokenId>(id));
    }
    return out;
  }

  Generator& generator_;
  const ApiKeys& keys_;
  const Clock& clock_;
  const std::function<void()> on_idle_;
  std::atomic<bool> draining_ = false;
  std::atomic<int> streams_ = 0;
  LiveGenerations live_;
};

}  // namespace

std::unique_ptr<InferenceService> InferenceService::Make(Generator& generator, const ApiKeys& keys,
                                                         const Clock& clock,
                                                         std::function<void()> on_idle) {
  return std::make_unique<Service>(generator, keys, clock, std::move(on_idle));
}

}  // namespace levin
