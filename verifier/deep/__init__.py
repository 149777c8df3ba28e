"""The deep mode: a kernel at work under NVIDIA's compute-sanitizer, reported apart from gates."""
