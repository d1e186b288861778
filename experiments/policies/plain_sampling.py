"""How a policy that is built here is sampled from where nothing else is said."""

from __future__ import annotations

from transformers import GenerationConfig, PreTrainedTokenizerFast


def plain_sampling(tokenizer: PreTrainedTokenizerFast) -> GenerationConfig:
    """From the policy's own distribution: the library's default cuts it to the top 50 tokens."""
    return GenerationConfig(
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
