"""Models on the Hugging Face Hub: the only package that imports huggingface_hub, and that only when it is used.

`push.py` uploads a model folder, `fetch.py` downloads one into the cache, `pull.py` writes it where the user wants it,
and `card.py` says in Markdown what a model is. Nothing from a hub is run.
"""
