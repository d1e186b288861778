"""The laptop policy's tokenizer: byte-pair encoding over whole phrases, with each number one token.

A response is then about 15 tokens long, and arithmetic a look-up that a tiny model can learn.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

PAD, EOS, UNKNOWN = "<pad>", "<eos>", "<unk>"
_PIECES = r"\d+|\\boxed\{|</?think>|[.,?=+*/}-]"


@dataclass(frozen=True)
class SpecialTokens:
    """Tokens that stand for no text; `others` are further ones, such as the place of an image."""

    pad: str
    eos: str
    unknown: str
    others: tuple[str, ...]


PLAIN = SpecialTokens(PAD, EOS, UNKNOWN, ())

NUMBER_WEIGHT = 100
"""Each number is learnt from that many times, so that its merges come before those of rare phrases."""


def train_tokenizer(
    texts: Sequence[str],
    numbers: Collection[int],
    vocab_size: int,
    max_token_length: int,
    special: SpecialTokens = PLAIN,
) -> PreTrainedTokenizerFast:
    """Learn the vocabulary from `texts` and `numbers`; the tokenizer pads on the left.

    Text is first cut into numbers, punctuation, tags and the phrases between them; pairs are merged inside
    these pieces only. special: tokens that the vocabulary begins with. Raises ValueError when `vocab_size` is
    too small for each of `numbers` to be one token.
    """
    tokenizer = Tokenizer(models.BPE(unk_token=special.unknown))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[special.pad, special.eos, special.unknown, *special.others],
        max_token_length=max_token_length,
        show_progress=False,
    )
    spelled = [str(number) for number in sorted(numbers)]
    tokenizer.train_from_iterator([*texts, *(spelled * NUMBER_WEIGHT)], trainer)
    split = [number for number in spelled if len(tokenizer.encode(number).ids) != 1]
    if split:
        raise ValueError(
            f"tokenizer.vocab_size = {vocab_size} leaves {len(split)} numbers in several tokens "
            f"({split[0]} first); raise it to at least {len(numbers) + 256}"
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=special.pad,
        eos_token=special.eos,
        unk_token=special.unknown,
        padding_side="left",
        **({"additional_special_tokens": list(special.others)} if special.others else {}),
    )
