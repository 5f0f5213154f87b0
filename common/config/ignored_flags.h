// Flags that other engines' launch lines carry and that change nothing here.
#pragma once

namespace levin {

inline constexpr const char* kIgnoredFlags[] = {
    "--trust-remote-code",    "--disable-custom-all-reduce",
    "--use-v2-block-manager", "--enable-request-id-headers",
    "--enforce-eager",        "--enable-chunked-prefill"};
inline constexpr const char* kIgnoredValues[] = {"--swap-space",
                                                 "--block-size",
                                                 "--max-seq-len-to-capture",
                                                 "--distributed-executor-backend",
                                                 "--task",
                                                 "--tokenizer-mode",
                                                 "--compilation-config",
                                                 "--limit-mm-per-prompt",
                                                 "--download-dir",
                                                 "--guided-decoding-backend"};

}  // namespace levin
