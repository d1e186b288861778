"""A tiny Qwen2 with a tokenizer of characters, and a task for it: say the digit that the question names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_CHARACTERS = "0123456789abcdefghijklmnopqrstuvwxyz +=?:\n"
_SPECIAL = ["<pad>", "<eos>", "<user>", "<assistant>"]
_TEMPLATE = (
    "{% for message in messages %}{{ '<user>' + message['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<assistant>' }}{% endif %}"
)
REWARD = """
REWARD_NAME, REWARD_TYPE = "digit", "batch"

def compute_score(reward_inputs, format_weight):
    scores = []
    for each in reward_inputs:
        accuracy = float(each["ground_truth"] in each["response"])
        short = float(each["response_length"] < 12)
        scores.append({"overall": accuracy + format_weight * short, "accuracy": accuracy, "format": short})
    return scores
"""


@dataclass(frozen=True)
class Assets:
    """policy: a Hugging Face folder. train, validation: questions. reward: a reward file of EasyR1."""

    policy: Path
    train: Path
    validation: Path
    reward: Path


def character_tokenizer(special: Sequence[str]) -> Any:
    """Of single characters and special tokens, of which the first two pad and end a sequence."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {token: index for index, token in enumerate([*special, *_CHARACTERS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=special[0]))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=special[0],
        eos_token=special[1],
        additional_special_tokens=list(special[2:]),
    )


def build_assets(folder: Path) -> Assets:
    import torch
    from transformers import GenerationConfig, Qwen2Config, Qwen2ForCausalLM

    policy = folder / "policy"
    tokenizer = character_tokenizer(_SPECIAL)
    tokenizer.chat_template = _TEMPLATE
    tokenizer.save_pretrained(policy)
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=512,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=1,
            pad_token_id=0,
        )
    )
    model.generation_config = GenerationConfig(eos_token_id=1, pad_token_id=0)
    model.save_pretrained(policy)
    for name, count in (("train", 24), ("validation", 4)):
        rows = [
            {"question_id": f"{name}-{index}", "problem": f"say {index % 5}?", "answer": str(index % 5)}
            for index in range(count)
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "reward.py").write_text(REWARD)
    return Assets(policy, folder / "train.jsonl", folder / "validation.jsonl", folder / "reward.py")
