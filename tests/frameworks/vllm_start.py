# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""vLLM: starts an engine with a small model that is made here, and generates.

    vllm_start.py FOLDER [start]

start: generates nothing. The model runner of version 2 counts the tokens in a kernel, so in a dry
run it would generate for ever.
"""
import json
import os
import sys

os.environ.update(VLLM_LOGGING_STREAM='ext://sys.stderr', HF_HUB_OFFLINE='1', VLLM_NO_USAGE_STATS='1')
folder = os.path.join(sys.argv[1], 'tiny-llama')
os.makedirs(folder, exist_ok=True)
with open(os.path.join(folder, 'config.json'), 'w', encoding='utf-8') as f:
    json.dump({'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 256, 'intermediate_size': 512, 'num_hidden_layers': 2,
               'num_attention_heads': 4, 'num_key_value_heads': 4, 'vocab_size': 512, 'max_position_embeddings': 512, 'rms_norm_eps': 1e-5,
               'bos_token_id': 1, 'eos_token_id': 2, 'torch_dtype': 'bfloat16'}, f)

from vllm import LLM, SamplingParams, TokensPrompt  # noqa: E402


def main():
    engine = LLM(folder, load_format='dummy', skip_tokenizer_init=True, enforce_eager=True, gpu_memory_utilization=0.02, max_model_len=128)
    if sys.argv[2:] == ['start']:
        print('started')
        return
    done = engine.generate([TokensPrompt(prompt_token_ids=[3, 4, 5])], SamplingParams(max_tokens=8, detokenize=False, ignore_eos=True))
    print('generated', len(done[0].outputs[0].token_ids))


if __name__ == '__main__':
    main()
