// Package otlp records spans as configured by environment variables (OTEL_…),
// and sends them to an OTLP receiver over HTTP.
//
// If no variable enables tracing, [Open] returns nil, which costs nothing.
// Otherwise the OpenTelemetry SDK samples and collects spans, and its exporter
// converts them to OTLP. This package sends the requests itself, because the
// OpenTelemetry client links gRPC, which adds 7.4 MB to the program.
//
// No request of the hub waits for the receiver. Spans wait in a queue of
// limited length (OTEL_BSP_MAX_QUEUE_SIZE). Spans are dropped and counted if
// the queue is full, or if the receiver does not accept them within
// OTEL_BSP_EXPORT_TIMEOUT. [Traces.Close] returns within a given time. Request
// headers are secrets: they never appear in logs or errors.
//
// Other packages decide which spans exist. A failure only causes gaps in
// traces.
package otlp
