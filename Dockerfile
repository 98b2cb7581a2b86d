# The service as a static binary that runs as nobody in particular.
#
#   docker build -t k8s .

FROM golang:1.26-trixie AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY testcluster/go.mod testcluster/go.sum testcluster/
RUN go mod download
COPY . .
RUN go run ./guests/build/all && \
    CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /k8s .

FROM gcr.io/distroless/static-debian13:nonroot
COPY --from=build /k8s /k8s
USER 65532:65532
EXPOSE 8000 9090
ENTRYPOINT ["/k8s"]
