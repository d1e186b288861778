"""A tiny random policy: a Llama with a character tokenizer, in a Hugging Face folder."""

from __future__ import annotations

import string
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

SPECIAL = ("<pad>", "<eos>", "<unk>")
VOCABULARY = (*SPECIAL, "\\boxed{", "}", "\n", *string.digits, *string.ascii_letters, *" .,:?")


def build_tiny_policy(folder: Path, seed: int = 0) -> Path:
    """Save one of about 20,000 parameters; its 73 tokens are about equally likely everywhere."""
    torch.manual_seed(seed)
    tokenizer = Tokenizer(
        models.WordLevel({token: i for i, token in enumerate(VOCABULARY)}, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\\boxed\{|[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    config = LlamaConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=192,
        tie_word_embeddings=True,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
        initializer_range=0.1,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="<eos>",
        unk_token="<unk>",
        padding_side="left",
    ).save_pretrained(folder)
    return folder
