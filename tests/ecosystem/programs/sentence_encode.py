"""sentence-transformers: a small encoder with pooling, and its losses."""

import tempfile

import torch
import transformers
from sentence_transformers import SentenceTransformer, losses, models, util

transformers.logging.set_verbosity_error()
torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "small", "red", "blue", "house", "car"]
    with open(f"{folder}/vocab.txt", "w") as file:
        file.write("\n".join(words) + "\n")
    transformers.BertTokenizer(f"{folder}/vocab.txt").save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64
    )
    transformers.BertModel(config).save_pretrained(folder)
    encoder = models.Transformer(folder)
    model = SentenceTransformer(modules=[encoder, models.Pooling(32)], device="cpu")
model.eval()
found = model.encode(["a small house", "a red car"], convert_to_tensor=True, show_progress_bar=False)
print(found.shape, found.abs().mean().item(), util.cos_sim(found, found).tolist())
features = [model.tokenize(texts) for texts in (["a red car"], ["a blue car"])]
loss = losses.CosineSimilarityLoss(model)(features, torch.tensor([0.5]))
loss.backward()
print(loss.item(), sum(p.grad.abs().sum().item() for p in model.parameters() if p.grad is not None))
