# syntax=docker/dockerfile:1

FROM python:3.13-slim-bookworm AS build
WORKDIR /app
RUN python -m venv .venv
COPY requirements.txt ./
RUN .venv/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes --requirement requirements.txt
COPY pyproject.toml README.md ./
COPY app app
RUN .venv/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation --editable .

FROM python:3.13-slim-bookworm
# A user with a name: PostgreSQL's initdb asks for it, should DATABASE_URL ever be unset.
RUN useradd --system --user-group --create-home --home-dir /data --shell /usr/sbin/nologin turnkeeper
WORKDIR /app
COPY --from=build /app /app
ENV PATH=/app/.venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    TURNKEEPER_DATA_DIR=/data \
    TURNKEEPER_LOG_FORMAT=json \
    TURNKEEPER_PORT=8080
USER turnkeeper
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
    CMD python -c "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ['TURNKEEPER_PORT'] + '/livez', timeout=2)"
CMD ["turnkeeper", "serve", "--host", "0.0.0.0"]
