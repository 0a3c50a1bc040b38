// Package otlp records spans as the environment says (OTEL_…), and sends them
// to an OTLP receiver over HTTP.
//
// Unless a variable asks for it, [Open] returns nil and costs nothing.
// Otherwise the SDK of OpenTelemetry samples and collects spans, and its
// exporter converts them to OTLP. This package makes the requests itself: the
// client of OpenTelemetry links gRPC, 7.4 MB of program.
//
// Nothing waits for the receiver. Spans wait in a queue with a limit
// (OTEL_BSP_MAX_QUEUE_SIZE). Spans for which there is no room, and spans that
// the receiver did not accept within OTEL_BSP_EXPORT_TIMEOUT, are dropped and
// counted, and [Traces.Close] returns within the given time. The headers of the
// requests are secrets: no log line and no error contains them.
//
// The edges decide which spans there are. A failure only leaves gaps in traces.
package otlp
