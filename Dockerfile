# syntax=docker/dockerfile:1
# Two images of Satchel.
#
#   docker build --target slim -t satchel:slim .          no browser, on distroless
#   docker build --target browser -t satchel .            with Chromium, on Debian
#
# Both run as user 65532, write to /data only, and fit a read-only root:
#
#   docker run --read-only --tmpfs /tmp -v satchel:/data -p 127.0.0.1:8787:8787 satchel:slim --no-auth
#
# Chromium keeps its own sandbox, which the default profile of Docker and Podman
# denies. With the browser also pass:
#
#   --shm-size 1g --security-opt seccomp=deploy/compose/seccomp.json

FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY crawl/appengine/go.mod crawl/appengine/
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH VERSION=0.1.0-dev COMMIT DATE RELEASES
RUN commit=$(printf %.8s "$COMMIT") \
 && CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w -X main.version=${VERSION#v} -X main.commit=$commit -X main.date=$DATE -X main.releases=$RELEASES" -o /out/satchel . \
 && install -d -o 65532 -g 65532 /out/data

FROM gcr.io/distroless/static-debian12:nonroot AS slim
COPY --from=build /out/satchel /usr/bin/satchel
COPY --from=build --chown=65532:65532 /out/data /data
ENV SATCHEL_DATA=/data SATCHEL_ADDR=0.0.0.0:8787
USER 65532:65532
VOLUME /data
EXPOSE 8787
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["/usr/bin/satchel", "doctor", "--probe"]
ENTRYPOINT ["/usr/bin/satchel"]

FROM debian:bookworm-slim AS browser
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates chromium fonts-liberation fonts-noto-color-emoji nodejs \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 65532 satchel && useradd --uid 65532 --gid 65532 --home-dir /data --no-create-home satchel
COPY --from=build /out/satchel /usr/bin/satchel
RUN /usr/bin/satchel browser install --browser-driver /opt/playwright
COPY --from=build --chown=65532:65532 /out/data /data
ENV SATCHEL_DATA=/data SATCHEL_ADDR=0.0.0.0:8787 SATCHEL_BROWSER_DRIVER=/opt/playwright
USER 65532:65532
VOLUME /data
EXPOSE 8787
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["/usr/bin/satchel", "doctor", "--probe"]
ENTRYPOINT ["/usr/bin/satchel"]
