# The hub: web server, hub worker and commands. No torch: the group `runner` is left out.
# Build from the repository's root: docker build -f docker/web.Dockerfile -t kernelhub-web .
FROM python:3.13-slim

RUN useradd --system --create-home --home-dir /srv/kernelhub kernelhub
WORKDIR /srv/kernelhub

# Dependencies first, so that a change of our code does not install them again.
COPY constraints.txt pyproject.toml ./
RUN python -m venv .venv \
 && .venv/bin/python -m pip install --no-cache-dir -c constraints.txt pip setuptools
COPY manage.py ./
COPY kernelhub kernelhub
COPY benchmarks benchmarks
COPY verifier verifier
COPY gpu_runner gpu_runner
COPY templates templates
COPY static static
RUN .venv/bin/python -m pip install --no-cache-dir -c constraints.txt --no-build-isolation -e .

ENV PATH=/srv/kernelhub/.venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    DJANGO_SETTINGS_MODULE=kernelhub.settings.prod \
    KERNELHUB_VAR=/srv/kernelhub/var

# Collected at build time with names that carry a hash; none of these values is used later.
RUN KERNELHUB_SECRET_KEY=build KERNELHUB_HOSTS=build \
    DATABASE_URL=postgres://build/build BROKER_URL=redis://build \
    python manage.py collectstatic --no-input

USER kernelhub
EXPOSE 8000
# The proxy in front ends TLS and sets X-Forwarded-Proto.
CMD ["uvicorn", "kernelhub.asgi:application", "--host", "0.0.0.0", "--port", "8000", \
     "--lifespan", "off", "--no-access-log"]
