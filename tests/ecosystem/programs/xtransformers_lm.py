"""x-transformers: a small decoder, trained for three steps."""

import torch
from x_transformers import Decoder, TransformerWrapper

torch.manual_seed(0)
model = TransformerWrapper(
    num_tokens=32, max_seq_len=16, attn_layers=Decoder(dim=32, depth=2, heads=2, rotary_pos_emb=True)
)
ids = torch.randint(0, 32, (2, 12))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(3):
    logits = model(ids[:, :-1])
    loss = torch.nn.functional.cross_entropy(logits.transpose(1, 2), ids[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
