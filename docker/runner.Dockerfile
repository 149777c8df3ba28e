# A node agent with its verifier. Talks to the hub over HTTP; holds no database address.
# Build from the repository's root: docker build -f docker/runner.Dockerfile -t kernelhub-runner .
FROM nvidia/cuda:13.0.1-devel-ubuntu24.04

RUN apt-get update \
 && apt-get install -y --no-install-recommends python3 python3-venv python3-dev g++ \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --create-home --home-dir /srv/kernelhub kernelhub
WORKDIR /srv/kernelhub

COPY constraints.txt pyproject.toml ./
RUN python3 -m venv .venv \
 && .venv/bin/python -m pip install --no-cache-dir -c constraints.txt pip setuptools
COPY manage.py ./
COPY kernelhub kernelhub
COPY benchmarks benchmarks
COPY verifier verifier
COPY gpu_runner gpu_runner
RUN .venv/bin/python -m pip install --no-cache-dir -c constraints.txt --no-build-isolation \
    --group runner -e . \
 && install -d -o kernelhub var

ENV PATH=/srv/kernelhub/.venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    KERNELHUB_VAR=/srv/kernelhub/var

USER kernelhub
CMD ["python", "-m", "gpu_runner", "agent", "--device", "auto"]
