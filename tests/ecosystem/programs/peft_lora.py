"""peft: LoRA on a tiny GPT-2, trained for three steps and merged."""

import peft
import torch
import transformers

transformers.logging.set_verbosity_error()
torch.manual_seed(0)
base = transformers.GPT2LMHeadModel(
    transformers.GPT2Config(n_layer=1, n_head=2, n_embd=32, vocab_size=64, n_positions=32)
)
model = peft.get_peft_model(base, peft.LoraConfig(r=4, target_modules=["c_attn"], task_type="CAUSAL_LM"))
print(model.get_nb_trainable_parameters())
ids = torch.randint(0, 64, (2, 8))
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.01)
model.eval()
for _ in range(3):
    loss = model(input_ids=ids, labels=ids).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
merged = model.merge_and_unload()
with torch.no_grad():
    print(merged(input_ids=ids).logits.abs().mean().item())
