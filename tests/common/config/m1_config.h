// config.json of the published M1 (model.md 1.1), as a value that tests change.
#pragma once

#include <boost/json.hpp>
#include <string>

namespace levin::testing {

inline boost::json::object M1Config() {
  boost::json::array kinds;
  for (int layer = 0; layer < 80; ++layer) kinds.push_back(layer % 8 == 7 ? 1 : 0);
  return {
      {"architectures", {"MiniMaxM1ForCausalLM"}},
      {"model_type", "minimax_m1"},
      {"attention_dropout", 0.0},
      {"attn_type_list", kinds},
      {"auto_map", {{"AutoConfig", "configuration_minimax_m1.MiniMaxM1Config"}}},
      {"bos_token_id", nullptr},
      {"eos_token_id", nullptr},
      {"head_dim", 128},
      {"hidden_act", "silu"},
      {"hidden_size", 6144},
      {"initializer_range", 0.02},
      {"intermediate_size", 9216},
      {"layernorm_full_attention_alpha", 3.5565588200778455},
      {"layernorm_full_attention_beta", 1.0},
      {"layernorm_linear_attention_alpha", 3.5565588200778455},
      {"layernorm_linear_attention_beta", 1.0},
      {"layernorm_mlp_alpha", 3.5565588200778455},
      {"layernorm_mlp_beta", 1.0},
      {"max_position_embeddings", 10240000},
      {"num_attention_heads", 64},
      {"num_experts_per_tok", 2},
      {"num_hidden_layers", 80},
      {"num_key_value_heads", 8},
      {"num_local_experts", 32},
      {"output_router_logits", false},
      {"postnorm", true},
      {"rms_norm_eps", 1e-05},
      {"rope_theta", 10000000},
      {"rotary_dim", 64},
      {"router_aux_loss_coef", 0.001},
      {"router_jitter_noise", 0.0},
      {"shared_intermediate_size", 0},
      {"shared_moe_mode", "sigmoid"},
      {"sliding_window", nullptr},
      {"tie_word_embeddings", false},
      {"transformers_version", "4.45.2"},
      {"use_cache", true},
      {"vocab_size", 200064},
  };
}

}  // namespace levin::testing
