#include "router/api/admin_handler.h"

#include <utility>

#include "common/base/version.h"
#include "router/api/error_reply.h"
#include "router/api/json_writer.h"

namespace levin {
namespace {

void WriteModel(JsonWriter& json, const std::string& name, const Generator& generator) {
  const ModelInfo& info = generator.model().info();
  json.BeginObject().Field("id", name).Field("object", "model");
  json.Field("created", info.created_unix_s).Field("owned_by", "minimax");
  json.Field("root", info.names.front()).NullField("parent");
  if (generator.window() > 0) {
    json.Field("max_model_len", generator.window());
  } else {
    json.NullField("max_model_len");  // no group was seen yet
  }
  json.Key("permission").BeginArray().EndArray().EndObject();
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string PercentDecoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
                        HexDigit(text[i + 2]) >= 0;
    if (!escape) {
      out += text[i];
      continue;
    }
    out += static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2]));
    i += 2;
  }
  return out;
}

// HEAD has the headers of GET and no body.
void SendText(const ApiCall& call, std::string_view type, std::string body) {
  if (call.request.method == "HEAD") body.clear();
  call.responder->Send(
      {.status = 200, .headers = {{"content-type", std::string(type)}}, .body = std::move(body)});
}

void SendJson(const ApiCall& call, JsonWriter& json) {
  SendText(call, "application/json", json.Take());
}

}  // namespace

void HandleModels(ApiCall call, const Generator& generator) {
  JsonWriter json;
  json.BeginObject().Field("object", "list").Key("data").BeginArray();
  for (const std::string& name : generator.model().info().names) WriteModel(json, name, generator);
  json.EndArray().EndObject();
  SendJson(call, json);
}

void HandleModel(ApiCall call, const Generator& generator, std::string_view id) {
  const std::string name = PercentDecoded(id);
  if (name.empty()) return call.responder->SendError(UnknownUrl());
  if (Status status = generator.model().CheckName(name); !status.ok()) {
    return call.responder->SendError(status);
  }
  JsonWriter json;
  WriteModel(json, name, generator);
  SendJson(call, json);
}

void HandleReady(ApiCall call, const Status& ready) {
  if (!ready.ok()) return call.responder->SendError(ready);
  HandleAlive(std::move(call));
}

void HandleAlive(ApiCall call) {
  JsonWriter json;
  json.BeginObject().Field("status", "ok").EndObject();
  SendJson(call, json);
}

void HandleVersion(ApiCall call) {
  JsonWriter json;
  json.BeginObject().Field("version", kVersion).EndObject();
  SendJson(call, json);
}

void HandleMetrics(ApiCall call, std::string text) {
  SendText(call, "text/plain; version=0.0.4; charset=utf-8", std::move(text));
}

}  // namespace levin
