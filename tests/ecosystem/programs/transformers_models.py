"""transformers: tiny GPT-2, BERT, LLaMA and T5: three steps of training, generation, saving and loading."""

import tempfile

import torch
import transformers

transformers.logging.set_verbosity_error()
MODELS = {
    "gpt2": lambda: transformers.GPT2LMHeadModel(
        transformers.GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=64, n_positions=64)
    ),
    "bert": lambda: transformers.BertForMaskedLM(
        transformers.BertConfig(
            num_hidden_layers=2, num_attention_heads=2, hidden_size=32, intermediate_size=64, vocab_size=64
        )
    ),
    "llama": lambda: transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            hidden_size=32,
            intermediate_size=64,
            vocab_size=64,
        )
    ),
    "t5": lambda: transformers.T5ForConditionalGeneration(
        transformers.T5Config(
            num_layers=2, num_heads=2, d_model=32, d_ff=64, d_kv=16, vocab_size=64, decoder_start_token_id=0
        )
    ),
}
for name, make in MODELS.items():
    torch.manual_seed(0)
    model = make()
    ids = torch.randint(1, 64, (2, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model.train()
    for _ in range(3):
        loss = model(input_ids=ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(name, "loss", loss.item())
    model.eval()
    if name != "bert":
        out = model.generate(ids[:, :4], max_new_tokens=5, do_sample=False, pad_token_id=0, eos_token_id=63)
        print(name, "generated", out.tolist())
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        again = type(model).from_pretrained(folder).eval()
    with torch.no_grad():
        first, second = (m(input_ids=ids, labels=ids).logits for m in (model, again))
    print(name, "loaded", bool((first == second).all()), first.abs().mean().item())
