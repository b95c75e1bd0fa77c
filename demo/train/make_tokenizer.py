"""Trains the demo model's sentencepiece model on captions: python make_tokenizer.py OUTPUT.model

UMT5's kind is unigram, whose own training finds few pieces in so few words. So BPE, which makes whole words pieces,
finds them, and a unigram model gets them with scores that make the fewest pieces the most probable segmentation,
earlier merges first. Ids as in UMT5: 0 pad, 1 end, 2 unknown. The rules of normalization fold case.
"""

import string
import sys
import tempfile
from pathlib import Path

import sentencepiece
from sentencepiece.sentencepiece_model_pb2 import ModelProto, TrainerSpec

from captions import Captioner, describe
from world import SceneSampler, VOCABULARY

PIECES = 480
CAPTIONS = 40000
RULES = "nmt_nfkc_cf"
LETTERS = string.ascii_lowercase + string.digits + ".,;:!?'-&"


def words():
    """Yields every word of the vocabulary, so that rare words become pieces as well."""
    lists = [*VOCABULARY["shapes"].values(), VOCABULARY["any_shape"], *VOCABULARY["sizes"].values(),
             *VOCABULARY["sides"].values()]
    lists += [entry["words"] for table in ("colours", "backgrounds") for entry in VOCABULARY[table].values()]
    lists += [ways for motion in VOCABULARY["motions"].values() for ways in motion.values()] + [VOCABULARY["travel"]]
    return [form for entries in lists for text in entries for form in text.split("|")]


def captions():
    scenes = SceneSampler("cpu", seed=1).sample(CAPTIONS)
    captioner = Captioner(seed=1)
    return [captioner.caption(describe(scenes, row)) for row in range(CAPTIONS)]


def train(lines):
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "captions.txt"
        # It has all letters that are required, because sentencepiece 0.2.2 ends the process if one is missing.
        corpus.write_text("\n".join([*lines, LETTERS]) + "\n")
        sentencepiece.SentencePieceTrainer.train(
            input=str(corpus), model_prefix=str(Path(folder) / "spiece"), model_type="bpe", vocab_size=PIECES,
            required_chars=LETTERS, character_coverage=1.0,
            pad_id=0, eos_id=1, unk_id=2, bos_id=-1, normalization_rule_name=RULES, minloglevel=1)
        model = ModelProto.FromString((Path(folder) / "spiece.model").read_bytes())
    model.trainer_spec.model_type = TrainerSpec.UNIGRAM
    model.trainer_spec.ClearField("input")
    model.trainer_spec.ClearField("model_prefix")
    for rank, piece in enumerate(model.pieces):
        if piece.type == ModelProto.SentencePiece.NORMAL:
            piece.score = -1 - rank / 1000
    return model


def main(output):
    output.write_bytes(train(captions() + words() * 20).SerializeToString())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
