# codea1-env without a GPU, as a user without privileges. In a clone:
#   docker build -t codea1 .
#   docker build -t codea1-openenv --target openenv .
#   docker build -t codea1-web --target web .
# docs/docker.md and docs/web.md say how to run them.
ARG BASE=python:3.12-slim

FROM ${BASE} AS source
RUN useradd --create-home player && python3 -m venv /opt/codea1
ENV PATH=/opt/codea1/bin:${PATH} PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
COPY . /src
# All that a container writes, so that the rest can be read-only.
VOLUME /home/player
WORKDIR /home/player

# A server of games for OpenEnv
FROM source AS openenv
RUN pip install '/src[openenv]'
USER player
EXPOSE 8000
CMD ["python", "-m", "codea1_agents.adapters.openenv_game", "--host", "0.0.0.0", "--port", "8000"]

FROM source AS served
RUN pip install -c /src/constraints.txt '/src[serve]'
USER player

# The page to play for everybody, without watching and reading runs
FROM served AS web
EXPOSE 8088
ENTRYPOINT ["codea1", "web", "--public", "--host", "0.0.0.0"]

# The command codea1
FROM served
EXPOSE 8080
ENTRYPOINT ["codea1"]
CMD ["--help"]
