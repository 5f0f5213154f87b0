#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <map>
#include <optional>

#include "common/base/check.h"
#include "common/rpc/grpc_status.h"
#include "levin/v1/inference.grpc.pb.h"
#include "router/rpc/inference_server.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_engine_client.h"

namespace levin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Mode = FakeEngineClient::Mode;

std::unique_ptr<ServedModel> LoadDemo() {
  RouterOptions options;
  options.model = LEVIN_SOURCE_DIR "/models/levin-demo";
  options.served_model_names = {"demo", "alias"};
  auto model = ServedModel::Load(options, 1'750'000'000);
  CHECK(model.has_value());
  return *std::move(model);
}

class InferenceServiceTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = LoadDemo().release(); }
  static void TearDownTestSuite() {
    delete model_;
    model_ = nullptr;
  }
  ~InferenceServiceTest() override {
    if (server_) server_->Stop();
  }

  void Start(Mode mode = Mode::kByItself, std::vector<std::string> api_keys = {}) {
    engine_ = std::make_unique<FakeEngineClient>(mode);
    generator_ = std::make_unique<Generator>(*model_, *engine_, *clock_);
    InferenceServerOptions options;
    options.api_keys = std::move(api_keys);
    auto server = InferenceServer::Start(options, *generator_, *clock_, {});
    ASSERT_TRUE(server) << server.error().message();
    server_ = *std::move(server);
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    stub_ = v1::Inference::NewStub(channel_);
  }

  static std::vector<TokenId> Ids(const std::string& text) { return model_->EncodeText(text); }
  // The text, then the end token.
  static FakeEngineClient::Script Says(const std::string& text) {
    std::vector<TokenId> ids = Ids(text);
    ids.push_back(model_->info().eos);
    return FakeEngineClient::Tokens(ids);
  }

  static v1::GenerateRequest Ask(const std::string& text, uint32_t max_tokens = 100) {
    v1::GenerateRequest request;
    request.set_text(text);
    request.mutable_stopping()->set_max_tokens(max_tokens);
    return request;
  }
  static v1::ChatRequest Say(const std::string& text) {
    v1::ChatRequest request;
    v1::ChatMessage* message = request.add_messages();
    message->set_role("user");
    message->add_parts()->set_text(text);
    request.mutable_stopping()->set_max_tokens(100);
    return request;
  }

  template <typename Event>
  struct Answer {
    std::vector<Event> events;
    grpc::Status grpc_status;
    Status status;  // the same with its details
    std::multimap<std::string, std::string> trailers;
  };
  template <typename Event>
  static Answer<Event> ReadAll(grpc::ClientContext& context, grpc::ClientReader<Event>& reader) {
    Answer<Event> answer;
    for (Event event; reader.Read(&event);) answer.events.push_back(event);
    answer.grpc_status = reader.Finish();
    answer.status = FromGrpc(answer.grpc_status);
    for (const auto& [key, value] : context.GetServerTrailingMetadata()) {
      answer.trailers.emplace(std::string(key.data(), key.size()),
                              std::string(value.data(), value.size()));
    }
    return answer;
  }
  Answer<v1::GenerateEvent> Generate(const v1::GenerateRequest& request,
                                     const std::string& authorization = "") {
    grpc::ClientContext context;
    context.AddMetadata("x-request-id", "req-1");
    if (!authorization.empty()) context.AddMetadata("authorization", authorization);
    return ReadAll(context, *stub_->Generate(&context, request));
  }
  Answer<v1::ChatEvent> Chat(const v1::ChatRequest& request) {
    grpc::ClientContext context;
    return ReadAll(context, *stub_->Chat(&context, request));
  }
  std::vector<std::string> Abort(const std::vector<std::string>& ids, bool all = false,
                                 const std::string& authorization = "") {
    grpc::ClientContext context;
    if (!authorization.empty()) context.AddMetadata("authorization", authorization);
    v1::AbortRequest request;
    for (const std::string& id : ids) request.add_generation_ids(id);
    request.set_all(all);
    v1::AbortResponse response;
    EXPECT_TRUE(stub_->Abort(&context, request, &response).ok());
    return {response.aborted_ids().begin(), response.aborted_ids().end()};
  }

  static std::string TextOf(const std::vector<v1::GenerateEvent>& events) {
    std::string text;
    for (const auto& event : events) text += event.delta().text();
    return text;
  }
  static std::vector<std::string> Shape(const std::vector<v1::GenerateEvent>& events) {
    std::vector<std::string> shape;
    for (const auto& event : events) {
      std::string name;
      if (event.has_started()) name = "started";
      if (event.has_delta()) name = "delta";
      if (event.has_choice_finished()) name = "choice_finished";
      if (event.has_completed()) name = "completed";
      if (shape.empty() || shape.back() != name) shape.push_back(name);
    }
    return shape;
  }

  // One message to any method: raw bytes there, raw bytes back.
  std::optional<std::string> Call(const std::string& method, const std::string& bytes) {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    grpc::Slice slice(bytes);
    grpc::ByteBuffer request(&slice, 1), response;
    std::promise<grpc::Status> done;
    stub.UnaryCall(&context, method, grpc::StubOptions(), &request, &response,
                   [&](grpc::Status status) { done.set_value(std::move(status)); });
    if (!done.get_future().get().ok()) return std::nullopt;
    std::vector<grpc::Slice> slices;
    (void)response.Dump(&slices);
    std::string out;
    for (const grpc::Slice& part : slices) {
      out.append(reinterpret_cast<const char*>(part.begin()), part.size());
    }
    return out;
  }
  // grpc.health.v1: field 1 of HealthCheckResponse.
  bool Serving(const std::string& name) {
    std::string request;
    if (!name.empty()) request = std::string("\x0a") + static_cast<char>(name.size()) + name;
    return Call("/grpc.health.v1.Health/Check", request) == "\x08\x01";
  }

  static inline ServedModel* model_ = nullptr;
  SystemClock system_clock_;
  const Clock* clock_ = &system_clock_;
  std::unique_ptr<FakeEngineClient> engine_;
  std::unique_ptr<Generator> generator_;
  std::unique_ptr<InferenceServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Inference::Stub> stub_;
};

// --- answers

TEST_F(InferenceServiceTest, GenerateStreamsTextFromStartedToCompleted) {
  Start();
  engine_->AnswerAllWith(Says("the cat sat."));
  const auto answer = Generate(Ask("once"));
  EXPECT_TRUE(answer.status.ok()) << answer.status.message();
  EXPECT_THAT(Shape(answer.events),
              ElementsAre("started", "delta", "choice_finished", "completed"));
  EXPECT_EQ(TextOf(answer.events), "the cat sat.");
  EXPECT_EQ(engine_->submitted().at(0).prompt, Ids("once"));
  EXPECT_EQ(answer.events.front().started().prompt_tokens(), Ids("once").size());
  EXPECT_EQ(answer.events.front().started().max_tokens(), 100u);
  EXPECT_FALSE(answer.events.front().started().generation_id().empty());
  const v1::Completed& completed = answer.events.back().completed();
  EXPECT_EQ(completed.usage().completion_tokens(), Ids("the cat sat.").size() + 1);
  EXPECT_FALSE(completed.fingerprint().empty());
  EXPECT_EQ(completed.choices_size(), 0);
}

TEST_F(InferenceServiceTest, TheWholeIsTheJoinedDeltas) {
  Start();
  engine_->AnswerAllWith(Says("one two three four"));
  v1::GenerateRequest request = Ask("count");
  request.mutable_output()->set_return_token_ids(true);
  request.mutable_stopping()->add_stop("thr");
  const auto deltas = Generate(request);
  request.mutable_output()->set_mode(v1::OUTPUT_MODE_WHOLE);
  const auto whole = Generate(request);
  ASSERT_THAT(Shape(whole.events), ElementsAre("completed"));
  const v1::Choice& choice = whole.events[0].completed().choices(0);
  EXPECT_EQ(choice.text(), "one two ");
  EXPECT_EQ(choice.text(), TextOf(deltas.events));
  EXPECT_EQ(choice.finished().stop_string(), "thr");
  std::vector<uint32_t> ids;
  for (const auto& event : deltas.events) {
    ids.insert(ids.end(), event.delta().token_ids().begin(), event.delta().token_ids().end());
  }
  EXPECT_EQ(ids, std::vector<uint32_t>(choice.token_ids().begin(), choice.token_ids().end()));
  EXPECT_EQ(whole.events[0].completed().usage().completion_tokens(), ids.size());
}

TEST_F(InferenceServiceTest, EachTokenHasItsIdAndLogprobTheEndTokenToo) {
  Start();
  FakeEngineClient::Script script = Says("hi");
  for (SampledToken& token : script.tokens) {
    token.logprob = -0.5f;
    token.rank = 1;
    token.top = {{token.token, -0.5f}, {7, -2.0f}};
  }
  engine_->AnswerAllWith(script);
  v1::GenerateRequest request = Ask("say hi");
  request.mutable_output()->set_return_token_ids(true);
  request.mutable_output()->set_logprobs(2);
  request.mutable_output()->set_usage_every_event(true);
  const auto answer = Generate(request);
  std::vector<uint32_t> ids;
  size_t logprobs = 0, counted = 0;
  for (const auto& event : answer.events) {
    for (uint32_t id : event.delta().token_ids()) ids.push_back(id);
    logprobs += static_cast<size_t>(event.delta().logprobs_size());
    if (event.has_delta()) counted = event.delta().usage().completion_tokens();
  }
  EXPECT_EQ(ids.size(), script.tokens.size());
  EXPECT_EQ(ids.back(), static_cast<uint32_t>(model_->info().eos));
  EXPECT_EQ(logprobs, ids.size());
  EXPECT_EQ(counted, ids.size());
  EXPECT_EQ(engine_->submitted().at(0).sampling.logprobs, 2);
  const v1::Started& started = answer.events.front().started();
  EXPECT_EQ(started.prompt_token_ids_size(), static_cast<int>(Ids("say hi").size()));
}

TEST_F(InferenceServiceTest, EchoBeginsWithThePrompt) {
  Start();
  engine_->AnswerAllWith(Says(" world"));
  v1::GenerateRequest request = Ask("hello");
  request.mutable_output()->set_echo(true);
  EXPECT_EQ(TextOf(Generate(request).events), "hello world");
  request.mutable_output()->set_mode(v1::OUTPUT_MODE_WHOLE);
  EXPECT_EQ(Generate(request).events.at(0).completed().choices(0).text(), "hello world");
}

TEST_F(InferenceServiceTest, TokenIdsAreAPromptAsWell) {
  Start();
  engine_->AnswerAllWith(Says("x"));
  v1::GenerateRequest request;
  for (uint32_t id : {3u, 4u, 5u}) request.mutable_token_ids()->add_ids(id);
  EXPECT_TRUE(Generate(request).status.ok());
  EXPECT_THAT(engine_->submitted().at(0).prompt, ElementsAre(3, 4, 5));
}

TEST_F(InferenceServiceTest, ChatRendersTheMessagesAsTheHttpApiDoes) {
  Start();
  engine_->AnswerAllWith(Says("hello to you"));
  v1::ChatRequest request = Say("hello");
  const auto answer = Chat(request);
  EXPECT_TRUE(answer.status.ok()) << answer.status.message();
  const auto prompt = model_->EncodeChat(
      R"({"messages":[{"role":"user","content":[{"type":"text","text":"hello"}]}]})");
  EXPECT_EQ(engine_->submitted().at(0).prompt, prompt->ids);
  std::string content;
  for (const auto& event : answer.events) content += event.delta().content();
  EXPECT_EQ(content, "hello to you");
  EXPECT_TRUE(answer.events.front().has_started());
  EXPECT_TRUE(answer.events.back().has_completed());

  request.mutable_output()->set_mode(v1::OUTPUT_MODE_WHOLE);
  const auto whole = Chat(request);
  ASSERT_EQ(whole.events.size(), 1u);
  EXPECT_EQ(whole.events[0].completed().choices(0).text(), "hello to you");
  EXPECT_EQ(whole.events[0].completed().choices(0).finished().finish_reason(),
            v1::FINISH_REASON_STOP);
}

// --- refusals

TEST_F(InferenceServiceTest, NamesTheFieldAndTheReasonOfARefusal) {
  Start();
  v1::GenerateRequest request = Ask("x");
  request.mutable_sampling()->set_temperature(3);
  auto answer = Generate(request);
  EXPECT_EQ(answer.status.code(), Code::kInvalidArgument);
  EXPECT_EQ(answer.status.reason(), "INVALID_FIELD");
  EXPECT_EQ(answer.status.param(), "sampling.temperature");
  EXPECT_THAT(answer.grpc_status.error_details(), HasSubstr("google.rpc.RequestInfo"));
  EXPECT_THAT(answer.grpc_status.error_details(), HasSubstr("req-1"));
  EXPECT_EQ(answer.trailers.find("x-request-id")->second, "req-1");
  EXPECT_TRUE(answer.events.empty());
  EXPECT_TRUE(engine_->submitted().empty());
}

TEST_F(InferenceServiceTest, RefusesWhatIsNotBuilt) {
  Start();
  const std::vector<std::pair<std::string, std::function<void(v1::GenerateRequest&)>>> cases = {
      {"sampling.n", [](auto& r) { r.mutable_sampling()->set_n(2); }},
      {"constraint", [](auto& r) { r.mutable_constraint()->set_regex("a+"); }},
      {"output.prompt_logprobs", [](auto& r) { r.mutable_output()->set_prompt_logprobs(0); }},
      {"priority", [](auto& r) { r.set_priority(1); }},
  };
  for (const auto& [path, change] : cases) {
    v1::GenerateRequest request = Ask("x");
    change(request);
    const auto answer = Generate(request);
    EXPECT_EQ(answer.status.code(), Code::kInvalidArgument) << path;
    EXPECT_EQ(answer.status.reason(), "UNSUPPORTED_PARAMETER") << path;
    EXPECT_EQ(answer.status.param(), path);
  }
  v1::ChatRequest chat = Say("x");
  chat.set_thinking_token_budget(5);
  EXPECT_EQ(Chat(chat).status.reason(), "UNSUPPORTED_PARAMETER");
}

TEST_F(InferenceServiceTest, RefusesAPromptThatIsMissingWrongOrTooLong) {
  Start();
  EXPECT_EQ(Generate(v1::GenerateRequest()).status.param(), "prompt");
  v1::GenerateRequest request;
  request.mutable_token_ids()->add_ids(1'000'000);
  EXPECT_EQ(Generate(request).status.param(), "token_ids");
  EXPECT_EQ(Generate(Ask("x", 1'000'000)).status.reason(), "CONTEXT_LENGTH_EXCEEDED");
  EXPECT_EQ(Chat(v1::ChatRequest()).status.param(), "messages");
}

TEST_F(InferenceServiceTest, AnUnknownModelIsNotFoundAnAliasIs) {
  Start();
  engine_->AnswerAllWith(Says("x"));
  v1::GenerateRequest request = Ask("x");
  request.set_model("other");
  EXPECT_EQ(Generate(request).status.code(), Code::kNotFound);
  request.set_model("alias");
  EXPECT_TRUE(Generate(request).status.ok());
}

TEST_F(InferenceServiceTest, WantsTheKey) {
  Start(Mode::kByItself, {"secret"});
  engine_->AnswerAllWith(Says("x"));
  EXPECT_EQ(Generate(Ask("x")).status.code(), Code::kUnauthenticated);
  EXPECT_EQ(Generate(Ask("x"), "Bearer wrong").status.code(), Code::kUnauthenticated);
  EXPECT_TRUE(Generate(Ask("x"), "Bearer secret").status.ok());
  grpc::ClientContext context;
  v1::GetModelResponse response;
  EXPECT_EQ(stub_->GetModel(&context, {}, &response).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(InferenceServiceTest, AFullQueueSaysWhenToComeBack) {
  Start();
  engine_->RefuseNext(
      Status(Code::kResourceExhausted, "QUEUE_FULL", "full").WithRetryAfterMs(1500));
  const auto answer = Generate(Ask("x"));
  EXPECT_EQ(answer.status.reason(), "QUEUE_FULL");
  EXPECT_EQ(answer.status.retry_after_ms(), 1500);
  EXPECT_EQ(answer.trailers.find("grpc-retry-pushback-ms")->second, "1500");
}

TEST_F(InferenceServiceTest, TheLossOfTheGroupEndsTheStreamWithItsStatus) {
  Start();
  engine_->Answer(FakeEngineClient::Failure(Status(Code::kAborted, "ENGINE_RESTARTED", "lost"),
                                            Ids("half an answer")));
  auto answer = Generate(Ask("x"));
  EXPECT_EQ(answer.status.reason(), "ENGINE_RESTARTED");
  EXPECT_FALSE(answer.events.empty());
  EXPECT_FALSE(answer.events.back().has_completed());
  engine_->set_group(std::nullopt);
  answer = Generate(Ask("x"));
  EXPECT_EQ(answer.status.code(), Code::kUnavailable);
}

// --- ends from outside

TEST_F(InferenceServiceTest, AClientThatCancelsFreesItsGeneration) {
  Start();
  FakeEngineClient::Script script = FakeEngineClient::Tokens(Ids("going on"));
  script.endless = true;
  engine_->AnswerAllWith(script);
  grpc::ClientContext context;
  auto reader = stub_->Generate(&context, Ask("x"));
  v1::GenerateEvent event;
  ASSERT_TRUE(reader->Read(&event));
  context.TryCancel();
  ASSERT_TRUE(engine_->WaitForCancels(1));
  EXPECT_EQ(engine_->cancels()[0].second, CancelReason::kClientGone);
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(InferenceServiceTest, TheClientsDeadlineIsTheGenerations) {
  Start();
  FakeEngineClient::Script script;
  script.endless = true;
  engine_->AnswerAllWith(script);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + milliseconds(200));
  const auto answer = ReadAll(context, *stub_->Generate(&context, Ask("x")));
  EXPECT_EQ(answer.status.code(), Code::kDeadlineExceeded);
  ASSERT_TRUE(engine_->WaitForCancels(1));
  const int64_t left_ms = engine_->submitted().at(0).deadline_unix_ms - system_clock_.UnixMs();
  EXPECT_LT(left_ms, 200);
  EXPECT_GT(left_ms, -20'000);
}

TEST_F(InferenceServiceTest, AbortEndsAStreamByItsId) {
  Start();
  FakeEngineClient::Script script = FakeEngineClient::Tokens(Ids("going on"));
  script.endless = true;
  engine_->AnswerAllWith(script);
  v1::GenerateRequest request = Ask("x");
  request.set_generation_id("mine");
  grpc::ClientContext context;
  auto reader = stub_->Generate(&context, request);
  v1::GenerateEvent event;
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.started().generation_id(), "mine");

  EXPECT_EQ(Generate(request).status.reason(), "GENERATION_EXISTS");
  EXPECT_THAT(Abort({"unknown"}), ElementsAre());
  EXPECT_THAT(Abort({"unknown", "mine"}), ElementsAre("mine"));
  while (reader->Read(&event)) EXPECT_FALSE(event.has_completed());
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(engine_->cancels().at(0).second, CancelReason::kAbort);
  EXPECT_THAT(Abort({"mine"}), ElementsAre());  // again: no error

  engine_->AnswerAllWith(Says("x"));
  EXPECT_TRUE(Generate(request).status.ok());  // its id is free again
}

TEST_F(InferenceServiceTest, AbortReachesTheStreamsOfItsOwnKeyOnly) {
  Start(Mode::kByItself, {"one", "two"});
  FakeEngineClient::Script script = FakeEngineClient::Tokens(Ids("going on"));
  script.endless = true;
  engine_->AnswerAllWith(script);
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer one");
  auto reader = stub_->Generate(&context, Ask("x"));
  v1::GenerateEvent event;
  ASSERT_TRUE(reader->Read(&event));
  const std::string id = event.started().generation_id();
  EXPECT_THAT(Abort({id}, false, "Bearer two"), ElementsAre());
  EXPECT_THAT(Abort({}, true, "Bearer two"), ElementsAre());
  EXPECT_THAT(Abort({}, true, "bearer one"), ElementsAre(id));
  while (reader->Read(&event)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(InferenceServiceTest, ADrainingServerTakesNoNewStreamsAndEndsTheOthers) {
  Start(Mode::kByStep);
  engine_->AnswerAllWith(Says("to the end"));
  grpc::ClientContext context;
  auto reader = stub_->Generate(&context, Ask("x"));
  ASSERT_TRUE(engine_->WaitForSubmits(1));
  server_->Drain();
  EXPECT_EQ(server_->in_flight(), 1);
  EXPECT_EQ(Generate(Ask("y")).status.reason(), "DRAINING");
  engine_->RunToEnd();
  const auto answer = ReadAll(context, *reader);
  EXPECT_TRUE(answer.status.ok());
  EXPECT_EQ(TextOf(answer.events), "to the end");
}

// The client reads nothing for more than a minute: its generation is not run to its end.
TEST_F(InferenceServiceTest, AClientThatDoesNotReadIsCutOff) {
  FakeClock clock;
  clock_ = &clock;
  Start(Mode::kByStep);
  GroupInfo group = *engine_->group();
  group.max_model_len = group.max_new_tokens = 10'000'000;
  engine_->set_group(group);
  // Logprobs make every token some 300 bytes.
  SampledToken token;
  token.token = Ids(" there").at(0);
  token.top.assign(20, {token.token, -1.0f});
  FakeEngineClient::Script script;
  script.tokens.assign(44'000, token);
  script.tokens_per_step = 1'000;
  engine_->AnswerAllWith(script);
  grpc::ClientContext context;
  v1::GenerateRequest request = Ask("x", 1'000'000);
  request.mutable_output()->set_logprobs(20);
  auto reader = stub_->Generate(&context, request);
  ASSERT_TRUE(engine_->WaitForSubmits(1));
  for (int i = 0; i < 4; ++i) engine_->Step();
  EXPECT_TRUE(engine_->cancels().empty());
  // Which of the writes is the one that gets stuck is gRPC's affair.
  for (int i = 0; i < 40 && engine_->cancels().empty(); ++i) {
    clock.Advance(seconds(61));
    engine_->Step();
  }
  ASSERT_EQ(engine_->cancels().size(), 1u);
  engine_->Step();
  const auto answer = ReadAll(context, *reader);
  EXPECT_EQ(answer.status.code(), Code::kCancelled);
}

// --- the other calls

TEST_F(InferenceServiceTest, TokenizesTextAndChat) {
  Start();
  grpc::ClientContext first, second, third;
  v1::TokenizeRequest request;
  v1::TokenizeResponse response;
  request.set_text("hello there");
  request.set_return_token_strings(true);
  request.set_return_prompt_text(true);
  ASSERT_TRUE(stub_->Tokenize(&first, request, &response).ok());
  EXPECT_EQ(response.count(), Ids("hello there").size());
  EXPECT_EQ(static_cast<size_t>(response.token_ids_size()), response.count());
  std::string joined;
  for (const std::string& one : response.token_strings()) joined += one;
  EXPECT_EQ(joined, "hello there");
  EXPECT_EQ(response.prompt_text(), "hello there");
  EXPECT_EQ(response.max_model_len(), 4096u);

  *request.mutable_chat() = Say("hello");
  request.set_count_only(true);
  ASSERT_TRUE(stub_->Tokenize(&second, request, &response).ok());
  EXPECT_EQ(response.token_ids_size(), 0);
  EXPECT_THAT(response.prompt_text(), HasSubstr("hello"));

  v1::DetokenizeRequest back;
  v1::DetokenizeResponse text;
  for (TokenId id : Ids("hello there")) back.add_token_ids(static_cast<uint32_t>(id));
  ASSERT_TRUE(stub_->Detokenize(&third, back, &text).ok());
  EXPECT_EQ(text.text(), "hello there");
}

TEST_F(InferenceServiceTest, DescribesTheModel) {
  Start();
  grpc::ClientContext context;
  v1::GetModelResponse model;
  ASSERT_TRUE(stub_->GetModel(&context, {}, &model).ok());
  EXPECT_EQ(model.name(), "demo");
  EXPECT_THAT(std::vector<std::string>(model.aliases().begin(), model.aliases().end()),
              ElementsAre("alias"));
  EXPECT_EQ(model.max_model_len(), 4096u);
  EXPECT_EQ(model.eos_token_ids(0), static_cast<uint32_t>(model_->info().eos));
  EXPECT_EQ(model.state(), v1::MODEL_STATE_ACTIVE);
  engine_->set_group(std::nullopt);
  grpc::ClientContext later;
  ASSERT_TRUE(stub_->GetModel(&later, {}, &model).ok());
  EXPECT_EQ(model.state(), v1::MODEL_STATE_LOADING);
}

TEST_F(InferenceServiceTest, HealthFollowsTheGroup) {
  Start();
  EXPECT_FALSE(Serving(""));
  EXPECT_FALSE(Serving("levin.v1.Inference"));
  EXPECT_TRUE(Serving("levin.live"));
  EXPECT_FALSE(Serving("levin.v1.Unknown"));
  server_->SetServing(true);
  EXPECT_TRUE(Serving(""));
  EXPECT_TRUE(Serving("levin.v1.Inference"));
  server_->SetServing(false);
  EXPECT_FALSE(Serving(""));
  EXPECT_TRUE(Serving("levin.live"));
}

TEST_F(InferenceServiceTest, ReflectionListsTheServicesAndKnowsTheirFiles) {
  Start();
  constexpr char kMethod[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
  // ServerReflectionRequest.list_services = "*"
  const auto list = Call(kMethod, "\x3a\x01*");
  ASSERT_TRUE(list);
  EXPECT_THAT(*list, HasSubstr("levin.v1.Inference"));
  EXPECT_THAT(*list, HasSubstr("grpc.health.v1.Health"));
  // ServerReflectionRequest.file_containing_symbol
  for (const std::string symbol : {"levin.v1.Inference", "grpc.health.v1.Health"}) {
    const auto file =
        Call(kMethod, "\x22" + std::string(1, static_cast<char>(symbol.size())) + symbol);
    ASSERT_TRUE(file) << symbol;
    EXPECT_THAT(*file, HasSubstr(".proto")) << symbol;
    EXPECT_THAT(*file, ::testing::Not(HasSubstr("not found"))) << symbol;
  }
}

TEST_F(InferenceServiceTest, ATakenPortIsNamed) {
  Start();
  InferenceServerOptions options;
  options.port = std::stoi(server_->address().substr(server_->address().rfind(':') + 1));
  const auto second = InferenceServer::Start(options, *generator_, *clock_, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().reason(), "PORT_IN_USE");
  EXPECT_THAT(second.error().message(), HasSubstr(std::to_string(options.port)));
}

}  // namespace
}  // namespace levin
